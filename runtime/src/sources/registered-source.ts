// A source of a controller with what the controller knows of it, and what is asked of any source, whoever wrote it.
import type { ObjectKey } from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import { type ResourceDefinition, nameOfType } from "../base/resource-definition.js";
import type { EventSource } from "./event-source.js";
import type { ResourceView } from "../cache/resource-view.js";
import type { HealthRecord } from "./health-record.js";
import type { ViewSource } from "./kind/kind-source.js";
import type { ViewWatch } from "./kind/view-watch.js";
import type { SourceHealth } from "../base/health.js";

/** The name under which the watch of the primaries is reported; no other source may have it. */
export const PRIMARY_SOURCE = "primary";

/** A source with what is known of its start. */
export interface RegisteredSource {
  readonly source: EventSource;
  /** What became of the calls that only this registry makes. */
  readonly record: HealthRecord;
  /** The dependents that it watches; none if it is the user's. */
  readonly dependents: readonly string[];
  /** The start that is under way or done; absent before, and after a stop. */
  started?: Promise<void> | undefined;
  /** Whether the start is under way. */
  isStarting: boolean;
  /** Ends the wait for the start. */
  giveUp?: (() => void) | undefined;
}

/** Tells whether a source shows a kind of Kubernetes; by what it can do, for it may come from another copy of this package. */
export function isViewSource(source: EventSource): source is ViewSource {
  return "startOrThrow" in source && "following" in source;
}

/** Returns how a source is doing, and what calls it; its getter may fail like any other function of the user. */
export function healthOf({ source, record }: RegisteredSource): SourceHealth {
  const stated = statedHealthOf(source);
  return record.health.status === "unhealthy" && stated.status !== "unhealthy" ? record.health : stated;
}

function statedHealthOf(source: EventSource): SourceHealth {
  try {
    return source.health;
  } catch (error) {
    return { status: "unhealthy", reason: `health failed: ${messageOf(error)}` };
  }
}

/** Returns what is wrong with the sources of a controller, and which have not started yet. */
export function failuresOf({
  registered,
  health,
  controller,
  primary,
}: {
  readonly registered: ReadonlyMap<string, RegisteredSource>;
  readonly health: { readonly [name: string]: SourceHealth };
  readonly controller: string;
  readonly primary: ResourceDefinition;
}): readonly string[] {
  const reasons = Object.values(health).flatMap(({ status, reason }) =>
    status === "unhealthy" && reason !== undefined ? [reason] : [],
  );
  const starting = [...registered].filter(([name, each]) => each.isStarting && health[name]?.reason === undefined);
  const waiting = starting.map(([name]) => `event source "${name}" of controller "${controller}" has not started yet`);
  if (health[PRIMARY_SOURCE]?.status === "unknown")
    waiting.unshift(`the ${primary.plural} of controller "${controller}" are not known yet`);
  return [...new Set([...reasons, ...waiting])];
}

/** Returns the sources by when they are started: what is outside may be fetched by what the sources know that come first. */
export function byStart(
  registered: Iterable<RegisteredSource>,
): Readonly<Record<"ofDependents" | "first" | "others" | "externals", readonly RegisteredSource[]>> {
  const all = [...registered];
  const isWatched = ({ source, dependents }: RegisteredSource) => dependents.length > 0 && isViewSource(source);
  const rest = all.filter(({ dependents }) => dependents.length === 0);
  const isFirst = ({ source }: RegisteredSource) => source.startPriority === "first";
  return {
    ofDependents: all.filter(isWatched),
    first: rest.filter(isFirst),
    others: rest.filter((each) => !isFirst(each)),
    externals: all.filter((each) => each.dependents.length > 0 && !isWatched(each)),
  };
}

/** Returns the watches that follow the namespaces of their controller. */
export function followedBy(registered: Iterable<RegisteredSource>): readonly ViewWatch[] {
  return [...registered].flatMap(({ source }) => (isViewSource(source) ? (source.following ?? []) : []));
}

/** Yields the views of other sources that may show the same objects, each from a watch of its own. */
export function* twinsOf(
  { view, client }: Pick<EventSource, "view" | "client">,
  others: Iterable<Pick<EventSource, "view" | "client">>,
): Iterable<ResourceView> {
  const kind = nameOfType(view?.definition);
  for (const other of others)
    if (other.view !== undefined && other.view !== view && other.client === client)
      if (nameOfType(other.view.definition) === kind) yield other.view;
}

/** Returns the keys that a source names; throws if one is none, which would fail where nobody knows any more who gave it. */
export function checkedKeys(source: string, primaries: Iterable<ObjectKey>): readonly ObjectKey[] {
  const keys: readonly unknown[] = [...primaries];
  const wrong = keys.findIndex((key) => typeof key !== "string");
  if (wrong === -1) return keys as ObjectKey[];
  const what = keys[wrong] === null ? "null" : typeof keys[wrong];
  throw new TypeError(`event source "${source}" names a primary by ${what}; a key is "namespace/name" or "name"`);
}
