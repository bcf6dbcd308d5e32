// The recordings in fixtures/live-objects: objects that were applied to a real API server, their live state, and whether another apply would have
// changed them.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { applyJsonPatch } from "#apiserver/patch/json-patch.js";
import type { JsonObject, JsonValue } from "#apiserver/json.js";
import type { ResourceDefinition } from "#runtime/base/kubernetes-object.js";
import { builtinDefinition, customDefinition, type CrdObject, type JsonResource } from "./kind-definitions.js";
import { repositoryRoot } from "../repository.js";

/** The field manager of the recorded applies. */
export const FIELD_MANAGER = "gen-operator";

const folder = join(repositoryRoot, "fixtures/live-objects");

/** A question about a recorded object: would this apply change it? */
export interface LiveObjectQuestion {
  readonly title: string;
  /** A JSON patch from the applied object to the desired one. Default: they are equal */
  readonly change?: JsonValue;
  /** A change by another client before the apply: a merge patch, or a forced apply if `manager` is set. */
  readonly foreign?: { readonly manager?: string; readonly object: JsonObject };
}

/** An object to apply, and the questions about it. */
export interface LiveObjectCase {
  readonly name: string;
  readonly desired: JsonResource;
  readonly questions: readonly LiveObjectQuestion[];
}

/** The recorded answer to a question. */
export interface RecordedVerdict {
  readonly title: string;
  readonly change?: JsonValue;
  /** The file with the live object after a change by another client. */
  readonly live?: string;
  /** Whether the apply changed nothing. */
  readonly matches: boolean;
}

/** The kind of a recorded object. `crd` is the file with the CRD of a custom kind. */
export interface RecordedKind {
  readonly apiVersion: string;
  readonly kind: string;
  readonly crd?: string;
}

/** A recorded question with its object. */
export interface LiveObject {
  readonly title: string;
  readonly definition: ResourceDefinition;
  readonly desired: JsonResource;
  /** The JSON as the server sent it. */
  readonly live: string;
  readonly matches: boolean;
}

/** The CRD of the custom kind. */
export const widgetCrd = parse(readFileSync(join(folder, "widgets.example.com.yaml"), "utf8")) as CrdObject;

/** Reads the cases to record. */
export function readLiveObjectCases(): LiveObjectCase[] {
  return parse(readFileSync(join(folder, "cases.yaml"), "utf8")) as LiveObjectCase[];
}

/** Reads the recordings. */
export function readLiveObjects(): LiveObject[] {
  const names = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return names.flatMap(({ name }) => {
    const text = (file: string) => readFileSync(join(folder, name, file), "utf8");
    const { apiVersion, kind, crd } = JSON.parse(text("kind.json")) as RecordedKind;
    const definition = crd === undefined ? builtinDefinition(apiVersion, kind) : customDefinition(widgetCrd);
    const applied = JSON.parse(text("desired.json")) as JsonResource;
    return (JSON.parse(text("verdict.json")) as RecordedVerdict[]).map(({ title, change, live, matches }) => ({
      title: `${name}: ${title}`,
      definition,
      desired: changed(applied, change),
      live: text(live ?? "live.json"),
      matches,
    }));
  });
}

/** Returns the desired object: the applied object with the change of the question. */
export function changed(applied: JsonResource, change: JsonValue | undefined): JsonResource {
  return change === undefined ? applied : (applyJsonPatch(structuredClone(applied), change) as JsonResource);
}
