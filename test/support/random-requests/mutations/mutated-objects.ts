// Objects of built-in kinds with a part or two that few would write.
import fc, { type Arbitrary } from "../../fast-check.js";
import type { JsonObject } from "#apiserver/json.js";
import { builtinDefinition, builtinSchemas, schemaNameOf } from "../../kinds/kind-definitions.js";
import { minimalObjects, OWN_NAMESPACE, type MinimalObject } from "../../kinds/minimal-objects.js";
import { change, Choices, type Schema } from "./mutations.js";

/** An object that is tried on both servers. */
export interface MutatedObject {
  readonly kind: string;
  /** Where it is created, with `$ns` for the namespace. */
  readonly target: string;
  readonly body: JsonObject;
  /** What was changed, in words. */
  readonly changes: readonly string[];
}

// A definition has schemas of its own, an APIService is called, and a namespace is what the others are in.
const LEFT_OUT = ["CustomResourceDefinition", "APIService", "Namespace"];
const MAX_CHANGES = 2;

/** Any object of the kinds that minimal-objects.ts has, changed in one place or two. */
export const mutatedObject: Arbitrary<MutatedObject> = fc.gen().map((generate) => {
  const choose = new Choices((count) => generate(oneOf, count));
  const chosen = choose.from(minimalObjects.filter(({ kind }) => !LEFT_OUT.includes(kind)));
  const body = bodyOf(chosen);
  const changes = mutate(body, schemaOf(chosen), choose);
  return { kind: chosen.kind, target: `${pathOf(chosen)}?dryRun=All`, body, changes };
});

const oneOf = (count: number) => fc.noBias(fc.nat({ max: count - 1 }));

/** Changes an object in one place or two, and says where and how. */
export function mutate(object: JsonObject, schema: Schema, choose: Choices): string[] {
  return Array.from({ length: 1 + choose.below(MAX_CHANGES) }, () => change(object, schema, choose));
}

/** The schema of a kind. */
export function schemaOf({ apiVersion, kind }: { apiVersion: string; kind: string }): Schema {
  return builtinSchemas()[schemaNameOf(apiVersion, kind)] as Schema;
}

/** The path of the objects of a kind, with `$ns` for the namespace. */
export function pathOf({ apiVersion, kind }: { apiVersion: string; kind: string }): string {
  const { plural, scope } = builtinDefinition(apiVersion, kind);
  const path = apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`;
  return `${path}${scope === "Namespaced" ? "/namespaces/$ns" : ""}/${plural}`;
}

/** The object as it is sent, with `$ns` for the namespace. */
export function bodyOf({ apiVersion, kind, name = "a", content }: MinimalObject): JsonObject {
  const object = { apiVersion, kind, metadata: { name }, ...content };
  return JSON.parse(JSON.stringify(object).replaceAll(OWN_NAMESPACE, "$ns")) as JsonObject;
}
