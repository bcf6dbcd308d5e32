// Objects of built-in kinds with one or two unusual parts.
import fc, { type Arbitrary } from "../../fast-check.js";
import type { JsonObject } from "#apiserver/json.js";
import { builtinDefinition, builtinSchemas, schemaNameOf } from "../../kinds/kind-definitions.js";
import { minimalObjects, OWN_NAMESPACE, type MinimalObject } from "../../kinds/minimal-objects.js";
import { change, Choices, type Schema } from "./mutations.js";

/** An object to send to both servers. */
export interface MutatedObject {
  readonly kind: string;
  /** The path of the collection; `$ns` stands for the namespace. */
  readonly target: string;
  readonly body: JsonObject;
  /** Descriptions of the changes. */
  readonly changes: readonly string[];
}

// A CRD has schemas of its own, the aggregator calls an APIService, and the other objects are in a Namespace.
const LEFT_OUT = ["CustomResourceDefinition", "APIService", "Namespace"];
const MAX_CHANGES = 2;

/** An object of any kind in minimal-objects.ts with one or two changes. */
export const mutatedObject: Arbitrary<MutatedObject> = fc.gen().map((generate) => {
  const choose = new Choices((count) => generate(oneOf, count));
  const chosen = choose.from(minimalObjects.filter(({ kind }) => !LEFT_OUT.includes(kind)));
  const body = bodyOf(chosen);
  const changes = mutate(body, schemaOf(chosen), choose);
  return { kind: chosen.kind, target: `${pathOf(chosen)}?dryRun=All`, body, changes };
});

const oneOf = (count: number) => fc.noBias(fc.nat({ max: count - 1 }));

/** Mutates an object in one or two places, and returns descriptions of the changes. */
export function mutate(object: JsonObject, schema: Schema, choose: Choices): string[] {
  return Array.from({ length: 1 + choose.below(MAX_CHANGES) }, () => change(object, schema, choose));
}

/** Returns the schema of a kind. */
export function schemaOf({ apiVersion, kind }: { apiVersion: string; kind: string }): Schema {
  return builtinSchemas()[schemaNameOf(apiVersion, kind)] as Schema;
}

/** Returns the path of the collection of a kind; `$ns` stands for the namespace. */
export function pathOf({ apiVersion, kind }: { apiVersion: string; kind: string }): string {
  const { plural, scope } = builtinDefinition(apiVersion, kind);
  const path = apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`;
  return `${path}${scope === "Namespaced" ? "/namespaces/$ns" : ""}/${plural}`;
}

/** Returns an object to send; `$ns` stands for the namespace. */
export function bodyOf({ apiVersion, kind, name = "a", content }: MinimalObject): JsonObject {
  const object = { apiVersion, kind, metadata: { name }, ...content };
  return JSON.parse(JSON.stringify(object).replaceAll(OWN_NAMESPACE, "$ns")) as JsonObject;
}
