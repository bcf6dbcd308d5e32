import { at, textAt } from "../../builtin/read-path.js";
import { type FieldError, invalidError, notSupportedError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, memberOf, objectAt } from "../../json.js";
import { checkNotNegative, checkOneOf, goSelector } from "../../validation/fields.js";
import { dropPodFields, podTemplateDefaults } from "../pod-template/defaults.js";
import { POD_NAMES, nameWarnings, templateWarnings } from "../pod-template/warnings.js";
import type { Strategy } from "../strategy.js";
import { checkJobSpec, indexWarnings } from "./job.js";
import { isTimeZone, scheduleProblem } from "./schedules.js";

export const cronJobStrategy: Strategy = {
  generation: "spec",
  structDefaults: podTemplateDefaults,
  dropFields: (cronJob) => dropPodFields(at(cronJob, "spec.jobTemplate.spec.template.spec")),
  validate: checkCronJob,
  warnings: (cronJob, old) => [
    ...nameWarnings(POD_NAMES, cronJob, old),
    ...templateWarnings("spec.jobTemplate.spec.template", cronJob, old),
    ...indexWarnings("spec.jobTemplate.spec", objectAt(objectAt(objectAt(cronJob, "spec"), "jobTemplate"), "spec")),
  ],
};

const MAX_CRON_NAME = 52;

function checkCronJob(cronJob: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(cronJob, "spec") ?? {};
  const counts = ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"];
  const zone = memberOf(spec, "timeZone");
  const isSameZone = old !== undefined && zone === memberOf(objectAt(old, "spec"), "timeZone");
  const name = textAt(cronJob, "metadata.name");
  const isTooLong = old === undefined && name.length > MAX_CRON_NAME;
  return [
    // The names of its Jobs have a timestamp as suffix.
    ...(isTooLong ? [invalidError("metadata.name", name, `must be no more than ${MAX_CRON_NAME} characters`)] : []),
    ...checkSchedule(memberOf(spec, "schedule"), memberOf(objectAt(old, "spec"), "schedule"), zone),
    ...counts.flatMap((key) => checkNotNegative(`spec.${key}`, memberOf(spec, key))),
    ...(isSameZone ? [] : checkTimeZone(zone)),
    ...checkOneOf("spec.concurrencyPolicy", memberOf(spec, "concurrencyPolicy"), ["Allow", "Forbid", "Replace"]),
    ...checkJobTemplate("spec.jobTemplate.spec", objectAt(objectAt(spec, "jobTemplate"), "spec") ?? {}),
  ];
}

// Jobs of a CronJob get a generated selector, so the template must not contain one.
function checkJobTemplate(path: string, spec: JsonObject): FieldError[] {
  const selector = objectAt(spec, "selector");
  return [
    ...checkJobSpec(path, spec),
    ...(selector === undefined
      ? []
      : [invalidError(`${path}.selector`, goSelector(selector), "`selector` will be auto-generated")]),
    ...(memberOf(spec, "manualSelector") === true
      ? [notSupportedError(`${path}.manualSelector`, true, ["nil", "false"])]
      : []),
  ];
}

function checkSchedule(
  schedule: JsonValue | undefined,
  before: JsonValue | undefined,
  zone: JsonValue | undefined,
): FieldError[] {
  if (typeof schedule !== "string" || schedule === "") return [requiredError("spec.schedule")];
  const problems = [scheduleProblem(schedule), zoneProblem(schedule, before, zone)];
  return problems.flatMap((problem) =>
    problem === undefined ? [] : [invalidError("spec.schedule", schedule, problem)],
  );
}

// A time zone in a stored schedule is still allowed.
function zoneProblem(schedule: string, before: JsonValue | undefined, zone: JsonValue | undefined): string | undefined {
  const hasZone = (text: JsonValue | undefined) => typeof text === "string" && text.includes("TZ");
  if (!hasZone(schedule)) return undefined;
  if (!hasZone(before)) return "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
  return zone === undefined ? undefined : "cannot use both timeZone field and TZ or CRON_TZ in schedule";
}

function checkTimeZone(zone: JsonValue | undefined): FieldError[] {
  if (typeof zone !== "string") return [];
  if (zone === "") return [invalidError("spec.timeZone", zone, "timeZone must be nil or non-empty string")];
  const explicit = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
  return [
    ...(zone.toLowerCase() === "local" ? [invalidError("spec.timeZone", zone, explicit)] : []),
    ...(zone === "Local" || isTimeZone(zone) ? [] : [invalidError("spec.timeZone", zone, `unknown time zone ${zone}`)]),
  ];
}
