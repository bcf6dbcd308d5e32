// Types and message helpers shared by the Pod Security checks.
import { objectsAt } from "../../builtin/read-path.js";
import { type JsonObject, type JsonValue, memberOf, objectAt, stringAt } from "../../json.js";

/** A Pod or a Pod template. */
export interface CheckedPod {
  readonly annotations: JsonObject;
  readonly spec: JsonObject;
  /** The minor version of Kubernetes whose Pod Security Standards apply. */
  readonly minor: number;
}

export interface Violation {
  readonly reason: string;
  readonly detail: string;
}

/** One check of a Pod Security Standard. */
export type SecurityCheck = (pod: CheckedPod) => Violation | undefined;

/** Returns the init, regular, and ephemeral containers of a Pod. */
export function containersOf({ spec }: CheckedPod): JsonObject[] {
  return ["initContainers", "containers", "ephemeralContainers"].flatMap((list) => objectsAt(spec, list));
}

/** Returns a field of the securityContext of a Pod or container. */
export function contextOf(holder: JsonObject, key: string): JsonValue | undefined {
  return memberOf(objectAt(holder, "securityContext"), key);
}

export function counted(singular: string, plural: string, count: number): string {
  return count === 1 ? singular : plural;
}

/** Joins names, each in quotes. */
export function quoted(items: readonly string[]): string {
  return items.map((item) => `"${item}"`).join(", ");
}

/** Formats the names of containers for a message. */
export function named(containers: readonly JsonObject[]): string {
  const names = containers.map((container) => stringAt(container, "name") ?? "");
  return `${counted("container", "containers", names.length)} ${quoted(names)}`;
}

/** Sorts values and removes duplicates. */
export function distinct(values: readonly string[]): string[] {
  return [...new Set(values)].sort();
}

/** Returns the subjects of a violation for a message: the Pod itself and the containers. */
export function settersOf(isPod: boolean, containers: readonly JsonObject[]): string[] {
  return [...(isPod ? ["pod"] : []), ...(containers.length > 0 ? [named(containers)] : [])];
}

/** Reports whether a Pod runs in its own user namespace. */
export function hasOwnUsers({ spec }: CheckedPod): boolean {
  return memberOf(spec, "hostUsers") === false;
}

export function isOfWindows({ spec }: CheckedPod): boolean {
  return stringAt(objectAt(spec, "os"), "name") === "windows";
}
