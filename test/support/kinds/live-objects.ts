// The objects in fixtures/live-objects: what was applied to a real API server, what it made of it, and whether applying again, or
// something else, would have changed anything there.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { applyJsonPatch } from "#apiserver/patch/json-patch.js";
import type { JsonObject, JsonValue } from "#apiserver/json.js";
import type { ResourceDefinition } from "#runtime/base/kubernetes-object.js";
import { builtinDefinition, customDefinition, type CrdObject, type JsonResource } from "./kind-definitions.js";
import { repositoryRoot } from "../repository.js";

/** Whose applies were recorded. */
export const FIELD_MANAGER = "gen-operator";

const folder = join(repositoryRoot, "fixtures/live-objects");

/** A question about a recorded object: would applying this now change it? */
export interface LiveObjectQuestion {
  readonly title: string;
  /** How what is desired differs from what was applied, as a JSON patch. */
  readonly change?: JsonValue;
  /** What somebody else did in between: a merge patch, or with `manager` a forced apply. */
  readonly foreign?: { readonly manager?: string; readonly object: JsonObject };
}

/** An object that is applied, and the questions about it. */
export interface LiveObjectCase {
  readonly name: string;
  readonly desired: JsonResource;
  readonly questions: readonly LiveObjectQuestion[];
}

/** The recorded answer to a question. */
export interface RecordedVerdict {
  readonly title: string;
  readonly change?: JsonValue;
  /** The file with the object, where somebody else had changed it. */
  readonly live?: string;
  /** Whether an apply changed nothing. */
  readonly matches: boolean;
}

/** The kind of a recorded object; a custom one names the file with its definition. */
export interface RecordedKind {
  readonly apiVersion: string;
  readonly kind: string;
  readonly crd?: string;
}

/** A recorded question with everything that belongs to it. */
export interface LiveObject {
  readonly title: string;
  readonly definition: ResourceDefinition;
  readonly desired: JsonResource;
  /** JSON text as the server sent it. */
  readonly live: string;
  readonly matches: boolean;
}

/** The definition of the custom kind among the cases. */
export const widgetCrd = parse(readFileSync(join(folder, "widgets.example.com.yaml"), "utf8")) as CrdObject;

/** Reads what is to be recorded. */
export function readLiveObjectCases(): LiveObjectCase[] {
  return parse(readFileSync(join(folder, "cases.yaml"), "utf8")) as LiveObjectCase[];
}

/** Reads what was recorded. */
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

/** Returns what is desired, given what was applied. */
export function changed(applied: JsonResource, change: JsonValue | undefined): JsonResource {
  return change === undefined ? applied : (applyJsonPatch(structuredClone(applied), change) as JsonResource);
}
