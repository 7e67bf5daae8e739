// Times in words: always with their day where it is not today, in the zone that was chosen.
// The zone is that of the browser, or UTC; every time says at the pointer what it is in UTC.

import { h } from "./dom.js";

const KEPT = "ensue-zone";
const DAY = 86400; // seconds

export function isUtc() {
  return localStorage.getItem(KEPT) === "UTC";
}

export function changeZone() {
  localStorage.setItem(KEPT, isUtc() ? "" : "UTC");
}

function zoned(options) {
  // Numbers that sort, whatever the language of the browser writes first.
  return new Intl.DateTimeFormat("en-GB", { ...options, timeZone: isUtc() ? "UTC" : undefined });
}

function parts(time, options) {
  return Object.fromEntries(zoned(options).formatToParts(time).map((each) => [each.type, each.value]));
}

export function zone(time = new Date()) {
  // `UTC`, or as `GMT+2`: at that time, since it may change in summer.
  return parts(time, { timeZoneName: "short" }).timeZoneName;
}

function day(time) {
  const { year, month, day: date } = parts(time, { year: "numeric", month: "2-digit", day: "2-digit" });
  return `${year}-${month}-${date}`;
}

function read(text) {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? null : time;
}

export function clock(text) {
  const time = read(text);
  if (!time) return text;
  const { hour, minute, second } = parts(time, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  const date = day(time) === day(new Date()) ? "" : `${day(time)} `;
  return `${date}${hour}:${minute}:${second}.${String(time.getMilliseconds()).padStart(3, "0")}`;
}

export function exactly(text) {
  // The whole of it: day, time and zone.
  const time = read(text);
  if (!time) return text;
  const date = day(time) === day(new Date()) ? `${day(time)} ` : "";
  return `${date}${clock(text)} ${zone(time)}`;
}

export function stamp(text, words = clock(text)) {
  return h("time", { datetime: text, title: `${exactly(text)}, or ${text}` }, words);
}

export function span(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

export function ago(text) {
  const time = read(text);
  const seconds = time ? (Date.now() - time.getTime()) / 1000 : 0;
  if (!time || seconds < 0) return stamp(text);
  // How many days ago is worked out by nobody: the day itself tells more.
  if (seconds > DAY) return stamp(text, clock(text).slice(0, -4));
  return stamp(text, seconds < 1.5 ? "just now" : `${span(seconds)} ago`);
}

export function fromField(value) {
  // What a field for day and time holds, in the zone of the page; nothing if it is not filled.
  const time = value ? read(isUtc() ? `${value}Z` : value) : null;
  return time ? time.toISOString() : "";
}

export function intoField(text) {
  const time = read(text);
  if (!text || !time) return "";
  const { hour, minute, second } = parts(time, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  return `${day(time)}T${hour}:${minute}:${second}`;
}
