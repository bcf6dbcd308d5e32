// Validation of the status of a Job: conditions, times, and counts must be consistent. Violations that the update does not touch are tolerated.
import { at, objectsAt, textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  duplicateError,
  invalidError,
  requiredError,
  withoutValue,
} from "../../errors/field-error.js";
import { type JsonObject, arrayAt, deepEqual, memberOf, objectAt } from "../../json.js";
import { checkNotNegative } from "../../validation/fields.js";
import { indexRanges, readIndexes } from "./job-indexes.js";

interface Update {
  readonly job: JsonObject;
  readonly live: JsonObject;
  readonly status: JsonObject;
  /** True if the update changes one of these fields of the status. */
  changes(...members: string[]): boolean;
  /** True if a condition of one of these types changes to or from true. */
  turns(...types: string[]): boolean;
}

const COUNTS = ["active", "succeeded", "failed", "ready", "terminating"];
const FINAL = ["Complete", "Failed"];

export function checkJobStatus(job: JsonObject, live: JsonObject): FieldError[] {
  const [status, before] = [job, live].map((one) => objectAt(one, "status") ?? {}) as [JsonObject, JsonObject];
  const update: Update = {
    ...{ job, live, status },
    changes: (...members) => members.some((name) => !deepEqual(status[name] ?? null, before[name] ?? null)),
    turns: (...types) => types.some((type) => isTrue(job, type) !== isTrue(live, type)),
  };
  return [
    ...COUNTS.flatMap((name) => checkNotNegative(`status.${name}`, memberOf(status, name))),
    ...checkUncounted(status),
    ...checkContradictions(update),
    ...checkTimes(update),
    ...checkEnd(update),
    ...checkIndexes(update),
    ...checkKept(update),
  ];
}

function isTrue(job: JsonObject, type: string): boolean {
  return objectsAt(job, "status.conditions").some((one) => one["type"] === type && one["status"] === "True");
}

const isFinished = (job: JsonObject): boolean => FINAL.some((type) => isTrue(job, type));
const wrongConditions = (detail: string): FieldError => withoutValue("status.conditions", "FieldValueInvalid", detail);

function checkUncounted(status: JsonObject): FieldError[] {
  const seen = new Set<unknown>();
  return ["succeeded", "failed"].flatMap((list) =>
    (arrayAt(objectAt(status, "uncountedTerminatedPods"), list) ?? []).flatMap((uid, index) => {
      const field = `status.uncountedTerminatedPods.${list}[${index}]`;
      if (uid === "") return [invalidError(field, uid, "must not be empty")];
      if (seen.has(uid)) return [duplicateError(field, uid)];
      seen.add(uid);
      return [];
    }),
  );
}

function checkContradictions({ job, turns }: Update): FieldError[] {
  const rules: [types: [string, string], isAsked: boolean][] = [
    [["Complete", "Failed"], turns("Complete", "Failed")],
    [["Complete", "FailureTarget"], turns("Complete", "FailureTarget")],
    [["SuccessCriteriaMet", "Failed"], true],
    [["SuccessCriteriaMet", "FailureTarget"], true],
  ];
  const needs: [types: [string, string], isAsked: boolean][] = [
    [["Failed", "FailureTarget"], turns("Failed")],
    [["Complete", "SuccessCriteriaMet"], turns("Complete", "SuccessCriteriaMet")],
  ];
  const hasPolicy = objectAt(objectAt(job, "spec"), "successPolicy") !== undefined;
  return [
    ...rules
      .filter(([types, isAsked]) => isAsked && types.every((type) => isTrue(job, type)))
      .map(([[one, other]]) => wrongConditions(`cannot set ${one}=True and ${other}=true conditions`)),
    ...needs
      .filter(([[type, needed], isAsked]) => isAsked && isTrue(job, type) && !isTrue(job, needed))
      .map(([[type, needed]]) =>
        wrongConditions(`cannot set ${type}=True condition without the ${needed}=true condition`),
      ),
    ...(hasPolicy && isTrue(job, "Complete") && !isTrue(job, "SuccessCriteriaMet")
      ? [wrongConditions("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")]
      : []),
  ];
}

function checkTimes({ job, live, status, changes, turns }: Update): FieldError[] {
  const [start, end] = ["startTime", "completionTime"].map((name) => textAt(status, name)) as [string, string];
  const [startedBefore, endedBefore] = [textAt(live, "status.startTime"), textAt(live, "status.completionTime")];
  const field = "status.completionTime";
  const isComplete = isTrue(job, "Complete");
  const isAsked = turns("Complete") || changes("completionTime");
  const isSuspended = at(job, "spec.suspend") === true;
  const neverRuns = isSuspended && at(job, "spec.completions") === 0;
  const isResumed = isTrue(live, "Suspended") && isFalse(job, "Suspended");
  const isMoved = startedBefore !== "" && changes("startTime") && !isResumed && !isSuspended;
  return [
    ...(isAsked && end !== "" && !isComplete
      ? [invalidError(field, end, "cannot set completionTime when there is no Complete=True condition")]
      : []),
    ...(isAsked && end === "" && isComplete
      ? [requiredError(field, "completionTime is required for Complete jobs")]
      : []),
    ...(changes("startTime", "completionTime") && start !== "" && end !== "" && Date.parse(end) < Date.parse(start)
      ? [invalidError(field, end, "must be equal to or after `startTime`")]
      : []),
    ...(end !== "" && endedBefore !== "" && end !== endedBefore
      ? [invalidError(field, end, "field is immutable")]
      : []),
    ...((turns(...FINAL) || changes("startTime")) && !neverRuns && start === "" && isFinished(job)
      ? [requiredError("status.startTime", "startTime is required for finished job")]
      : []),
    ...(isMoved
      ? [
          invalidError(
            "status.startTime",
            start === "" ? null : start,
            "field is immutable for unsuspended job once set",
          ),
        ]
      : []),
  ];
}

function isFalse(job: JsonObject, type: string): boolean {
  return objectsAt(job, "status.conditions").some((one) => one["type"] === type && one["status"] === "False");
}

// A finished Job has no running Pods.
function checkEnd({ job, live, status, changes }: Update): FieldError[] {
  const isEnd = isFinished(job) !== isFinished(live);
  const [active, ready] = [Number(memberOf(status, "active") ?? 0), memberOf(status, "ready")];
  const uncounted = objectAt(status, "uncountedTerminatedPods");
  const [succeeded, failed] = ["succeeded", "failed"].map((list) => arrayAt(uncounted, list) ?? null);
  const running = ["active", "terminating"].flatMap((name) => {
    const count = Number(memberOf(status, name) ?? 0);
    return (isEnd || changes(name)) && count > 0 && isFinished(job)
      ? [invalidError(`status.${name}`, count, `${name}>0 is invalid for finished job`)]
      : [];
  });
  const isUncounted = isFinished(job) && (succeeded !== null || failed !== null);
  const shown = { Succeeded: succeeded ?? null, Failed: failed ?? null };
  return [
    ...running,
    ...((isEnd || changes("uncountedTerminatedPods")) && isUncounted
      ? [invalidError("status.uncountedTerminatedPods", shown, "must be empty for finished job")]
      : []),
    ...(changes("ready", "active") && typeof ready === "number" && ready > active
      ? [invalidError("status.ready", ready, "cannot set more ready pods than active")]
      : []),
  ];
}

function checkIndexes({ job, status, changes }: Update): FieldError[] {
  const spec = objectAt(job, "spec") ?? {};
  const [completions, limit] = ["completions", "backoffLimitPerIndex"].map((name) => memberOf(spec, name));
  const isIndexed = memberOf(spec, "completionMode") === "Indexed";
  const [completed, failed] = [textAt(status, "completedIndexes"), memberOf(status, "failedIndexes")];
  const unreadable = (name: string) => {
    const read = changes(name) && typeof completions === "number" ? readIndexes(textAt(status, name), completions) : 0;
    const detail = `error parsing ${name}: ${read}`;
    return typeof read === "string" ? [invalidError(`status.${name}`, textAt(status, name), detail)] : [];
  };
  const overlap =
    changes("completedIndexes", "failedIndexes") && typeof failed === "string" && typeof completions === "number"
      ? overlapOf(completed, failed, completions)
      : undefined;
  return [
    ...unreadable("completedIndexes"),
    ...(limit === undefined ? [] : unreadable("failedIndexes")),
    ...(changes("completedIndexes") && completed !== "" && !isIndexed
      ? [
          invalidError(
            "status.completedIndexes",
            completed,
            "cannot set non-empty completedIndexes when non-indexed completion mode",
          ),
        ]
      : []),
    ...(changes("failedIndexes") && typeof failed === "string" && limit === undefined
      ? [
          invalidError(
            "status.failedIndexes",
            failed,
            "cannot set non-null failedIndexes when backoffLimitPerIndex is null",
          ),
        ]
      : []),
    ...(overlap === undefined
      ? []
      : [
          invalidError(
            "status.failedIndexes",
            failed ?? "",
            `failedIndexes and completedIndexes overlap at index: ${overlap}`,
          ),
        ]),
  ];
}

function overlapOf(completed: string, failed: string, completions: number): number | undefined {
  const others = indexRanges(failed, completions);
  for (const [first, last] of indexRanges(completed, completions)) {
    const other = others.find(([from, to]) => first <= to && from <= last);
    if (other !== undefined) return Math.max(first, other[0]);
  }
  return undefined;
}

// Terminal conditions cannot be removed, and finished Pods stay counted, unless an elastic indexed Job is scaled down.
function checkKept({ job, live, status }: Update): FieldError[] {
  const spec = objectAt(job, "spec") ?? {};
  const mayShrink =
    memberOf(spec, "completionMode") === "Indexed" && memberOf(spec, "completions") === memberOf(spec, "parallelism");
  const isGone = (type: string) => isTrue(live, type) && !isTrue(job, type);
  const wasComplete = isTrue(live, "Complete") && !isTrue(live, "SuccessCriteriaMet");
  return [
    ...["Failed", "Complete", "FailureTarget"]
      .filter(isGone)
      .map((type) => wrongConditions(`cannot disable the terminal ${type}=True condition`)),
    ...["failed", ...(mayShrink ? [] : ["succeeded"])].flatMap((name) => {
      const count = Number(memberOf(status, name) ?? 0);
      const isLess = count < Number(at(live, `status.${name}`) ?? 0);
      return isLess ? [invalidError(`status.${name}`, count, `cannot decrease the ${name} counter`)] : [];
    }),
    ...(isGone("SuccessCriteriaMet") ? [wrongConditions("cannot disable the SuccessCriteriaMet=True condition")] : []),
    ...(wasComplete && isTrue(job, "SuccessCriteriaMet")
      ? [wrongConditions("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")]
      : []),
  ];
}
