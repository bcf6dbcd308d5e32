// What the checks of the security of Pods have in common, and how they name what is wrong.
import { objectsAt } from "../../builtin/read-path.js";
import { type JsonObject, type JsonValue, memberOf, objectAt, stringAt } from "../../json.js";

/** A Pod, or what Pods are made from. */
export interface CheckedPod {
  readonly annotations: JsonObject;
  readonly spec: JsonObject;
  /** The minor version of Kubernetes whose rules hold. */
  readonly minor: number;
}

/** What is wrong with a Pod. */
export interface Violation {
  readonly reason: string;
  readonly detail: string;
}

/** One rule. */
export type SecurityCheck = (pod: CheckedPod) => Violation | undefined;

/** Lists all containers of a Pod. */
export function containersOf({ spec }: CheckedPod): JsonObject[] {
  return ["initContainers", "containers", "ephemeralContainers"].flatMap((list) => objectsAt(spec, list));
}

/** Returns a member of the security context of a Pod or container. */
export function contextOf(holder: JsonObject, key: string): JsonValue | undefined {
  return memberOf(objectAt(holder, "securityContext"), key);
}

/** Writes `singular` or `plural`. */
export function counted(singular: string, plural: string, count: number): string {
  return count === 1 ? singular : plural;
}

/** Writes names in quotes. */
export function quoted(items: readonly string[]): string {
  return items.map((item) => `"${item}"`).join(", ");
}

/** Writes containers by their names. */
export function named(containers: readonly JsonObject[]): string {
  const names = containers.map((container) => stringAt(container, "name") ?? "");
  return `${counted("container", "containers", names.length)} ${quoted(names)}`;
}

/** Sorts values and leaves out those that occur again. */
export function distinct(values: readonly string[]): string[] {
  return [...new Set(values)].sort();
}

/** Names who sets something: the Pod itself, and containers. */
export function settersOf(isPod: boolean, containers: readonly JsonObject[]): string[] {
  return [...(isPod ? ["pod"] : []), ...(containers.length > 0 ? [named(containers)] : [])];
}

/** True for a Pod whose users are not those of its node. */
export function hasOwnUsers({ spec }: CheckedPod): boolean {
  return memberOf(spec, "hostUsers") === false;
}

/** True for a Pod of Windows. */
export function isOfWindows({ spec }: CheckedPod): boolean {
  return stringAt(objectAt(spec, "os"), "name") === "windows";
}
