// Validation and immutable fields of Events.
import { textAt } from "../../builtin/read-path.js";
import { type FieldError, invalidError } from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, deepEqual, isObject, memberOf, objectAt } from "../../json.js";
import { checkQualifiedName, checkRequired } from "../../validation/fields.js";
import { type GoStruct, checkKept, goForm, goReference } from "../../validation/immutable-fields.js";
import type { Strategy } from "../strategy.js";

/** Events of core/v1. */
export const eventStrategy: Strategy = {
  defaultPropagation: undefined,
  createsOnUpdate: true,
  checksFinalizers: false,
  nameRule: "path-segment",
  checksMetadata: [],
  validate: checkEvent,
};

/** Events of events.k8s.io/v1, which share the storage of core/v1. */
export const newEventStrategy: Strategy = {
  createsOnUpdate: true,
  defaultPropagation: undefined,
  validate: checkNewEvent,
};

const EVENT_TEXTS = { reportingInstance: 128, action: 128, reason: 128 };
const NOTE_LENGTH = 1024;

/** Validates an Event of events.k8s.io/v1. */
function checkNewEvent(event: JsonObject, old: JsonObject | undefined): FieldError[] {
  const own = checkTold(event, NEW_NAMES);
  if (old !== undefined) return [...own, ...checkChangedSeries(event, old), ...checkEventKept(event, old)];
  const type = textAt(event, "type");
  const deprecated = ["FirstTimestamp", "LastTimestamp", "Count", "Source"].filter((name) => {
    const value = memberOf(event, `deprecated${name}`);
    return isObject(value) ? Object.keys(value).length > 0 : (value ?? 0) !== 0;
  });
  return [
    ...own,
    ...checkSeries(objectAt(event, "series")),
    ...checkRequired("eventTime", memberOf(event, "eventTime")),
    ...(type === "Normal" || type === "Warning" ? [] : [invalidError("type", "", `has invalid value: ${type}`)]),
    ...deprecated.map((name) => invalidError(lowerFirst(name), "", "needs to be unset")),
  ];
}

function checkSeries(series: JsonObject | undefined): FieldError[] {
  if (series === undefined) return [];
  return [
    ...(Number(memberOf(series, "count") ?? 0) < 2 ? [invalidError("series.count", "", "should be at least 2")] : []),
    ...checkRequired("series.lastObservedTime", memberOf(series, "lastObservedTime")),
  ];
}

function checkChangedSeries(event: JsonObject, old: JsonObject): FieldError[] {
  const [series, before] = [event, old].map((one) => objectAt(one, "series"));
  return deepEqual(series, before) ? [] : checkSeries(series);
}

const EVENT_SOURCE: GoStruct = { Component: "", Host: "" };

// Validates immutable fields in the order of kube-apiserver, with the field names of core/v1; `reason` is checked twice.
function checkEventKept(event: JsonObject, old: JsonObject): FieldError[] {
  const kept = (field: string, shown: (one: JsonObject) => JsonValue) => checkKept(field, shown(event), shown(old));
  const text = (field: string, member = field) => kept(field, (one) => textAt(one, member));
  const value = (field: string, member: string, absent: JsonValue = null) =>
    kept(field, (one) => memberOf(one, member) ?? absent);
  const related = (one: JsonObject) => objectAt(one, "related");
  return [
    ...kept("involvedObject", (one) => goReference(objectAt(one, "regarding"))),
    ...text("reason"),
    ...text("message", "note"),
    ...kept("source", (one) => goForm(EVENT_SOURCE, objectAt(one, "deprecatedSource"))),
    ...value("firstTimestamp", "deprecatedFirstTimestamp"),
    ...value("lastTimestamp", "deprecatedLastTimestamp"),
    ...value("count", "deprecatedCount", 0),
    ...text("reason"),
    ...text("type"),
    ...value("eventTime", "eventTime"),
    ...text("action"),
    ...kept("related", (one) => (related(one) === undefined ? null : goReference(related(one)))),
    ...text("reportingController"),
    ...text("reportingInstance"),
  ];
}

/** Field names of an API version, and the name of the reporter in error messages. */
interface EventNames {
  about: string;
  note: string;
  reporter: string;
}

const NEW_NAMES: EventNames = { about: "regarding", note: "note", reporter: "reportingController" };
const OLD_NAMES: EventNames = { about: "involvedObject", note: "message", reporter: "reportingComponent" };

// An Event with an eventTime must name its reporter and reason.
function checkTold(event: JsonObject, names: EventNames): FieldError[] {
  const namespace = textAt(event, "metadata.namespace");
  const about = textAt(event, `${names.about}.namespace`);
  const isElsewhere = invalidError("involvedObject.namespace", about, "does not match event.namespace");
  if ((memberOf(event, "eventTime") ?? null) === null) {
    const fits = about === "" ? namespace === "default" : about === namespace;
    return fits ? [] : [isElsewhere];
  }
  const reporter = textAt(event, names.reporter);
  const isHomeless = about === "" && namespace !== "default" && namespace !== "kube-system";
  return [
    ...(isHomeless ? [isElsewhere] : []),
    ...checkRequired(names.reporter, reporter),
    ...checkQualifiedName(names.reporter, reporter),
    ...Object.entries(EVENT_TEXTS).flatMap(([key, most]) => [
      ...checkRequired(key, textAt(event, key)),
      ...checkLength(key, textAt(event, key), most),
    ]),
    ...checkLength("message", textAt(event, names.note), NOTE_LENGTH),
  ];
}

function checkLength(field: string, text: string, most: number): FieldError[] {
  return Buffer.byteLength(text) > most ? [invalidError(field, "", `can have at most ${most} characters`)] : [];
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

/** Validates an Event of core/v1; Events of cluster-scoped objects must be in namespace `default`. */
function checkEvent(event: JsonObject): FieldError[] {
  return checkTold(event, OLD_NAMES);
}
