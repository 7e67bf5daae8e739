// What the playground begins with, and what it offers to look at.

const LOGINS = `eventtype Failed { attribute string user; };
eventtype Done   { attribute string user; };
eventtype Warning { attribute string user; };
`;

export const EXAMPLES = [
  {
    name: "three failures, then success",
    library: `${LOGINS}
// Three failed logins and then one that works, within a minute:
// did somebody guess a password?
Warning correlation GuessedPassword (Failed failed, Done done)
    failed{3} ; done
    within 1 min
    by user
{
    case true: push new Warning { user = done.user };
}
`,
    events: `# seconds, type, data: one event a line
0  Failed {"user": "ann"}
5  Failed {"user": "ann"}
7  Failed {"user": "bob"}
12 Failed {"user": "ann"}
20 Done   {"user": "ann"}
30 Failed {"user": "bob"}
31 Done   {"user": "bob"}
`,
    until: "",
  },
  {
    name: "something that does not come",
    library: `eventtype Order   { attribute long number; };
eventtype Payment { attribute long number; };
eventtype Reminder { attribute long number; };

// An order that is not paid for within ten minutes.
Reminder correlation NotPaid (Order order, Payment payment)
    order ; timeout(10 min)
    unless payment
    by number
{
    case true: push new Reminder { number = order.number };
}
`,
    events: `0   Order   {"number": 1}
60  Order   {"number": 2}
200 Payment {"number": 1}
`,
    until: "1000",
  },
  {
    name: "how many different ones",
    library: `eventtype Login { attribute string user, address; };
eventtype Spread { attribute string user; attribute long addresses; };

// One user from at least three addresses within five minutes.
Spread correlation ManyAddresses (Login login)
    login
    within 5 min
    by user
    keep all
    having distinct(login.address) >= 3
{
    case true: push new Spread { user = login.user, addresses = distinct(login.address) };
}
`,
    events: `0   Login {"user": "ann", "address": "10.0.0.1"}
20  Login {"user": "ann", "address": "10.0.0.2"}
30  Login {"user": "ann", "address": "10.0.0.1"}
90  Login {"user": "ann", "address": "198.51.100.7"}
400 Login {"user": "ann", "address": "203.0.113.9"}
`,
    until: "",
  },
  {
    name: "a pilot's display, by modes (ECL)",
    library: `eventtype Airframe {};
eventtype Tactical {};
eventtype Navigational {};
eventtype Pilot { attribute char mode; };
eventtype Display {};

Display ecl NavigationDisplay (
    Airframe af, Tactical tac, Navigational nav,
    Pilot t where mode = 't', Pilot n where mode = 'n'
)
{
    modes {
        in (t) do { repeat { notify { accumulate { af, tac } } } }
        in (n) do { repeat { notify { accumulate { af, nav } } } }
    }
}
`,
    events: `0 Airframe
1 Tactical
2 Pilot {"mode": "n"}
3 Airframe
4 Tactical
5 Navigational
`,
    until: "",
  },
];
