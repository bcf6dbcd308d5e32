import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { readCrds } from "#generator/read/crd/read-crds.js";
import { compareCrds } from "#generator/diff/compare-crds.js";
import type { Change } from "#generator/diff/change.js";
import { repositoryRoot } from "../repository.js";

type Schema = Record<string, unknown>;

/** A change of a schema with its expected classification. */
export interface CrdChange {
  readonly name: string;
  /** The message of a breaking change, or `compatible`, or `none`. */
  readonly says: string;
  readonly before: Schema;
  readonly after: Schema;
  /** A value of spec.f that is valid before the change. */
  readonly stored?: unknown;
  /** Whether the schemas describe the whole object. Default: they describe spec.f */
  readonly of?: "object";
}

/** Reads fixtures/crd-changes.yaml. */
export function readCrdChanges(): CrdChange[] {
  const groups = parse(readFileSync(join(repositoryRoot, "fixtures/crd-changes.yaml"), "utf8")) as {
    [says: string]: Omit<CrdChange, "says">[];
  };
  return Object.entries(groups).flatMap(([says, changes]) => changes.map((change) => ({ ...change, says })));
}

/** Returns the schema of the object before or after a change. */
export function schemaOf({ of, ...change }: CrdChange, side: "before" | "after"): Schema {
  if (of === "object") return change[side];
  const spec = { type: "object", properties: { f: change[side], keep: { type: "string" } } };
  return { type: "object", properties: { spec } };
}

/** Returns a CRD with a schema. */
export function crdWith(schema: Schema, { plural = "gadgets", kind = "Gadget", ...version }: CrdOptions = {}): object {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.example.com` },
    spec: {
      group: "example.com",
      names: { plural, kind },
      scope: "Namespaced",
      versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema }, ...version }],
    },
  };
}

/** The names of a CRD, and additional fields of its version. */
export interface CrdOptions {
  plural?: string;
  kind?: string;
  [field: string]: unknown;
}

/** Compares two CRDs as `gen-operator diff` does. */
export function diffOf(before: object, after: object): Change[] {
  const [former, current] = [before, after].map((crd) => {
    const { crds, diagnostics } = readCrds({ file: "crd.json", text: JSON.stringify(crd) });
    if (crds.length === 0) throw new Error(JSON.stringify([crd, diagnostics]));
    return crds;
  });
  return compareCrds(former!, current!);
}
