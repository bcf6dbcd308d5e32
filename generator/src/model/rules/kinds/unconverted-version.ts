import { quote, type Diagnostic } from "../../../diagnostic.js";
import type { Crd, CrdVersion } from "../../../input/crd/crd.js";
import type { PartMemory } from "../../../parts/part-memory.js";
import type { ResolvedProject } from "../../build/resolved-project.js";
import { isRecord } from "../../schema/raw-schema.js";

/**
 * Finds primaries that are served in versions with different fields, without a webhook that converts them.
 *
 * Without conversion the API server changes nothing but `apiVersion`, and prunes the fields that a version lacks.
 */
export function checkUnconvertedVersions(
  crds: readonly Crd[],
  { controllers }: ResolvedProject,
  parts: PartMemory,
): Diagnostic[] {
  const primaries = new Set(controllers.flatMap(({ primary }) => (primary === undefined ? [] : [keyOf(primary)])));
  return crds
    .filter((crd) => primaries.has(keyOf(crd)))
    .flatMap((crd) => {
      const { digest } = crd;
      const problems =
        digest === undefined ? problemsOf(crd) : parts.recall("unconverted", digest, () => problemsOf(crd));
      return problems.map(({ message, hint }): Diagnostic => {
        return { severity: "warning", rule: "unconverted-version", message, ...crd.placeOf(), hint };
      });
    });
}

interface Problem {
  readonly message: string;
  readonly hint: string;
}

function problemsOf(crd: Crd): Problem[] {
  if (isConverted(crd)) return [];
  const stored = crd.versions.find(({ isStorage }) => isStorage);
  if (stored === undefined) return [];
  const others = crd.versions.filter((version) => version.isServed && version !== stored);
  return others.flatMap((other): Problem[] => {
    const difference = differenceOf(stored, other);
    if (difference === undefined) return [];
    const message =
      `${crd.kind} is stored as ${quote(stored.name)} and served as ${quote(other.name)} without conversion, ` +
      `and ${difference}`;
    const hint = `state spec.conversion with a webhook, or stop serving ${quote(other.name)}`;
    return [{ message, hint }];
  });
}

function differenceOf(stored: CrdVersion, other: CrdVersion): string | undefined {
  const [before, after] = [fieldsOf(stored), fieldsOf(other)];
  for (const [path, type] of before) {
    const found = after.get(path);
    if (found === undefined) {
      if (!isKept(path, after)) return `${quote(other.name)} has no ${path}, so its readers never see that field`;
    } else if (found !== type)
      return `${path} is ${type} in ${quote(stored.name)} and ${found} in ${quote(other.name)}`;
  }
  const lost = [...after.keys()].find((path) => !before.has(path) && !isKept(path, before));
  return lost && `${quote(stored.name)} has no ${lost}, so the API server drops that field`;
}

// Below a field that keeps unknown fields nothing is pruned.
function isKept(path: string, fields: ReadonlyMap<string, string>): boolean {
  const steps = path.split(".");
  return steps.some((_step, index) => fields.get(steps.slice(0, index).join(".")) === "any object");
}

/** Returns the fields of a version by their paths, with their types in words. */
function fieldsOf({ schema }: CrdVersion): Map<string, string> {
  const fields = new Map<string, string>();
  const visit = (node: unknown, path: string): void => {
    if (!isRecord(node)) return;
    fields.set(path, typeOf(node));
    const { properties, items, additionalProperties } = node;
    if (isRecord(properties))
      for (const [name, child] of Object.entries(properties)) visit(child, path === "" ? name : `${path}.${name}`);
    visit(items, `${path}[]`);
    visit(additionalProperties, `${path}.*`);
  };
  visit(schema, "");
  return fields;
}

function typeOf(schema: { readonly [keyword: string]: unknown }): string {
  if (schema["x-kubernetes-preserve-unknown-fields"] === true) return "any object";
  if (schema["x-kubernetes-int-or-string"] === true) return "int-or-string";
  return String(schema["type"]);
}

function isConverted({ document }: Crd): boolean {
  const spec = (document as { readonly spec?: unknown }).spec;
  const conversion = isRecord(spec) ? spec["conversion"] : undefined;
  return isRecord(conversion) && conversion["strategy"] === "Webhook";
}

function keyOf({ group, kind }: { readonly group: string; readonly kind: string }): string {
  return `${kind}.${group}`;
}
