import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { applyMergePatch, type JsonObject } from "@gen-operator/schema";
import { repositoryRoot } from "../repository.js";

/** A CRD that the API server rejects. */
export interface RefusedCrd {
  readonly name: string;
  readonly crd: object;
  /** A part of the error message of the API server. */
  readonly says: string;
}

interface Entry {
  readonly f?: JsonObject;
  readonly version?: JsonObject;
  readonly crd?: JsonObject;
  readonly says: string;
}

/** Reads fixtures/refused-crds.yaml. */
export function readRefusedCrds(): RefusedCrd[] {
  const groups = parse(readFileSync(join(repositoryRoot, "fixtures/refused-crds.yaml"), "utf8")) as {
    [group: string]: Entry[];
  };
  return Object.entries(groups).flatMap(([group, entries]) =>
    entries.map(({ f = { type: "string" }, version = {}, crd = {}, says }, index) => ({
      name: `${group} ${index + 1}: ${says}`,
      crd: patched(thingsWith(patched(versionWith(f), version)), crd) as object,
      says,
    })),
  );
}

function patched(value: JsonObject, patch: JsonObject): JsonObject {
  return applyMergePatch(value, patch);
}

function versionWith(f: JsonObject): JsonObject {
  const properties = { spec: { type: "object", properties: { f } }, status: { type: "object", properties: { f } } };
  const openAPIV3Schema = { type: "object", properties };
  return { name: "v1", served: true, storage: true, schema: { openAPIV3Schema } };
}

function thingsWith(version: JsonObject): JsonObject {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "things.example.com" },
    spec: {
      group: "example.com",
      scope: "Namespaced",
      names: { kind: "Thing", plural: "things" },
      versions: [version],
    },
  };
}
