import { textTypeOf } from "../../builtin/scalar-text.js";
import { forbiddenError, invalidError, WHOLE, type FieldError } from "../../errors/field-error.js";
import { badRequest, invalid } from "../../errors/status-error.js";
import { parseInteger } from "./delete-options.js";

const NUMBERS = {
  sinceSeconds: { least: 1, rule: "must be greater than 0" },
  tailLines: { least: 0, rule: "must be greater than or equal to 0" },
  limitBytes: { least: 1, rule: "must be greater than 0" },
};

/** Fails for a query that asks for the log of the Pod `name` in a way that makes no sense. */
export function checkLogOptions(name: string, query: URLSearchParams): void {
  const [since, ...others] = Object.keys(NUMBERS).map((key) => {
    const text = query.get(key);
    return [key, text === null ? undefined : parseInteger(text)] as const;
  });
  checkTime(query.get("sinceTime") ?? "");
  const isTwice = since?.[1] !== undefined && query.has("sinceTime");
  const both = "at most one of `sinceTime` or `sinceSeconds` may be specified";
  const errors = [
    ...[...others, ...(isTwice || since === undefined ? [] : [since])].flatMap(checkNumber),
    ...(isTwice ? [forbiddenError(WHOLE, both)] : []),
    ...(query.has("stream") ? [forbiddenError("stream", "may not be specified")] : []),
  ];
  if (errors.length > 0) throw invalid({ kind: "PodLogOptions", group: "", name }, errors);
}

function checkTime(text: string): void {
  if (text === "" || text === "null") return;
  const time = textTypeOf("io.k8s.apimachinery.pkg.apis.meta.v1.Time")?.canonical(text);
  if (time !== undefined && "problem" in time) throw badRequest(time.problem);
}

function checkNumber([key, value]: readonly [string, number | undefined]): FieldError[] {
  const { least, rule } = NUMBERS[key as keyof typeof NUMBERS];
  return value === undefined || value >= least ? [] : [invalidError(key, value, rule)];
}
