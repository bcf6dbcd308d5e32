import { quote } from "../../diagnostic.js";
import { describeValue } from "../yaml/describe-value.js";
import { isRecord } from "../yaml/json.js";
import type { YamlPath } from "../yaml/yaml-document.js";

type Schema = { readonly [keyword: string]: unknown };

/** Something wrong with a version beside its schema. */
export interface SubresourceProblem {
  readonly severity: "error" | "warning";
  readonly path: YamlPath;
  readonly message: string;
}

/** The paths of the subresource `scale`, and below which field each leads. */
const SCALE_PATHS = [
  { name: "specReplicasPath", below: ["spec"], isRequired: true },
  { name: "statusReplicasPath", below: ["status"], isRequired: true },
  { name: "labelSelectorPath", below: ["status", "spec"], isRequired: false },
] as const;

/** Checks the subresources of a version of a CRD against its schema. */
export function checkSubresources(subresources: unknown, schema: Schema): SubresourceProblem[] {
  if (subresources === undefined || subresources === null) return [];
  const fail = (path: YamlPath, message: string): SubresourceProblem => ({ severity: "error", path, message });
  if (!isRecord(subresources))
    return [fail([], `subresources must be an object, found ${describeValue(subresources)}`)];
  const wrong = ["status", "scale"].filter((name) => !isRecord(subresources[name] ?? {}));
  if (wrong.length > 0)
    return wrong.map((name) => fail([name], `${name} must be an object, found ${describeValue(subresources[name])}`));
  const { scale } = subresources;
  if (!isRecord(scale)) return [];
  return SCALE_PATHS.flatMap(({ name, below, isRequired }): SubresourceProblem[] => {
    const path = scale[name] ?? "";
    if (path === "") return isRequired ? [fail(["scale"], `scale needs ${name}`)] : [];
    const fields = typeof path === "string" && /^(?:\.[A-Za-z_][\w-]*)+$/.test(path) ? path.slice(1).split(".") : [];
    const isBelow = below.some((field) => field === fields[0]) && fields.length > 1;
    const where = below.map((field) => `.${field}`).join(" or ");
    if (!isBelow)
      return [fail(["scale", name], `${name} must be a simple path below ${where}, found ${describeValue(path)}`)];
    if (!leadsNowhere(schema, fields)) return [];
    const message = `${name} leads to ${quote(`.${fields.join(".")}`)}, which the schema lacks, so the subresource scale is without that value`;
    return [{ severity: "warning", path: ["scale", name], message }];
  });
}

/** Tells whether a path certainly leads to no field. */
export function leadsNowhere(schema: Schema, [first, ...rest]: readonly string[]): boolean {
  if (first === undefined || schema["x-kubernetes-preserve-unknown-fields"] === true) return false;
  const { additionalProperties } = schema;
  if (additionalProperties === true) return false;
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
  const field = Object.hasOwn(properties, first) ? properties[first] : additionalProperties;
  return !isRecord(field) || leadsNowhere(field, rest);
}
