import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPDeployment;
import com.espertech.esper.runtime.client.EPEventService;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/**
 * Sends the events of a file through one Esper pattern, several times, on one thread.
 *
 * <p>Arguments: the file of events, the file of EPL, `clock` or `no-clock` (whether the engine's
 * time follows the events), the number of repeats. All events are in memory, as objects, before
 * anything is timed; every repeat deploys the pattern anew, so that it starts without state. Each
 * repeat prints one line: processor nanoseconds of this thread, nanoseconds by the wall clock, and
 * the number of matches. The first line is of the round that warms the compiler up.
 */
public final class EsperPatterns {
    public static class Step {
        private final String user;
        private final double size;

        Step(String user, double size) {
            this.user = user;
            this.size = size;
        }

        public String getUser() {
            return user;
        }

        public double getSize() {
            return size;
        }
    }

    public static final class Login extends Step {
        Login(String user, double size) {
            super(user, size);
        }
    }

    public static final class Open extends Step {
        Open(String user, double size) {
            super(user, size);
        }
    }

    public static final class Copy extends Step {
        Copy(String user, double size) {
            super(user, size);
        }
    }

    public static final class Logout extends Step {
        Logout(String user, double size) {
            super(user, size);
        }
    }

    public static final class Ping extends Step {
        Ping(String user, double size) {
            super(user, size);
        }
    }

    private static final String[] TYPES = {"Login", "Open", "Copy", "Logout", "Ping"};
    private static final int RECORD_BYTES = 24;

    private Step[] events;
    private String[] types;
    private long[] times;

    public static void main(String[] arguments) throws Exception {
        EsperPatterns bench = new EsperPatterns();
        bench.read(Path.of(arguments[0]));
        String pattern = Files.readString(Path.of(arguments[1]));
        boolean withClock = arguments[2].equals("clock");
        int repeats = Integer.parseInt(arguments[3]);
        bench.run(pattern, withClock, repeats);
    }

    /** A record is: type and user as 32-bit numbers, time in microseconds, size as a double. */
    private void read(Path file) throws Exception {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
        int count = bytes.remaining() / RECORD_BYTES;
        events = new Step[count];
        types = new String[count];
        times = new long[count];
        for (int at = 0; at < count; at++) {
            int type = bytes.getInt();
            // A string of its own for every event, as a parser would leave it.
            String user = String.format("user-%08d", bytes.getInt());
            times[at] = bytes.getLong();
            double size = bytes.getDouble();
            types[at] = TYPES[type];
            events[at] = made(type, user, size);
        }
    }

    private static Step made(int type, String user, double size) {
        switch (type) {
            case 0:
                return new Login(user, size);
            case 1:
                return new Open(user, size);
            case 2:
                return new Copy(user, size);
            case 3:
                return new Logout(user, size);
            default:
                return new Ping(user, size);
        }
    }

    private void run(String pattern, boolean withClock, int repeats) throws Exception {
        Configuration configuration = new Configuration();
        configuration.getCommon().addEventType(Step.class);
        configuration.getCommon().addEventType(Login.class);
        configuration.getCommon().addEventType(Open.class);
        configuration.getCommon().addEventType(Copy.class);
        configuration.getCommon().addEventType(Logout.class);
        configuration.getCommon().addEventType(Ping.class);
        configuration.getCommon().getTimeSource().setTimeUnit(TimeUnit.MICROSECONDS);
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        EPCompiled compiled =
                EPCompilerProvider.getCompiler()
                        .compile(pattern, new CompilerArguments(configuration));
        for (int repeat = 0; repeat <= repeats; repeat++) {
            time(configuration, compiled, withClock, "round-" + repeat);
        }
    }

    private void time(
            Configuration configuration, EPCompiled compiled, boolean withClock, String name)
            throws Exception {
        EPRuntime runtime = EPRuntimeProvider.getRuntime(name, configuration);
        EPEventService service = runtime.getEventService();
        service.advanceTime(times[0]);
        EPDeployment deployment = runtime.getDeploymentService().deploy(compiled);
        long[] matches = new long[1];
        for (EPStatement statement : deployment.getStatements()) {
            if (statement.getName().equals("found")) {
                statement.addListener(
                        (added, removed, from, by) -> matches[0] += added == null ? 0 : added.length);
            }
        }
        System.gc();
        long wall = System.nanoTime();
        long processor = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        if (withClock) {
            for (int at = 0; at < events.length; at++) {
                service.advanceTime(times[at]);
                service.sendEventBean(events[at], types[at]);
            }
        } else {
            for (int at = 0; at < events.length; at++) {
                service.sendEventBean(events[at], types[at]);
            }
        }
        processor = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - processor;
        wall = System.nanoTime() - wall;
        System.out.println(processor + " " + wall + " " + matches[0]);
        runtime.destroy();
    }
}
