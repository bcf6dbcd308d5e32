import type { CacheSpec, FiltersSpec, MappingSpec, ScheduleSpec } from "../../input/workflow-spec.js";
import type { YamlPath } from "../../input/yaml/yaml-document.js";
import { parseDuration } from "../duration.js";
import type { CacheModel, EventSourceModel, FiltersModel, InformerModel, MappingModel } from "../project-model.js";
import { buildBuiltin, type FindKind } from "./build-builtin.js";
import type { ResolvedEventSource } from "./resolved-project.js";
import { activationOf } from "./stated-condition.js";
import { IDENTITY_FIELDS } from "../schema/schema-path.js";

/** Builds the filters that are stated in one place. */
export type BuildFilters = (filters: FiltersSpec | undefined, path: YamlPath) => FiltersModel;

/** Builds the model of an event source that broke no rule. */
export function buildEventSource(
  source: ResolvedEventSource,
  buildFilters: BuildFilters,
  findKind: FindKind,
): EventSourceModel {
  const { name, spec } = source;
  if (spec.resource !== undefined) return Object.freeze(informerOf(source, buildFilters, findKind));
  for (const kind of ["poll", "perPrimaryPoll"] as const) {
    const schedule = spec[kind];
    if (schedule !== undefined) return Object.freeze({ kind, name, ...scheduleOf(schedule) });
  }
  return Object.freeze({ kind: "inbound", name });
}

/** Returns how often something is polled, in the words of the runtime. */
export function scheduleOf({ every, ...stated }: ScheduleSpec): { intervalMs: number; fetchTimeoutMs?: number } {
  return { intervalMs: parseDuration(every), ...fetchTimeoutOf(stated) };
}

/** Returns how long one fetch may take, if a spec states it. */
export function fetchTimeoutOf({ fetchTimeout }: Pick<ScheduleSpec, "fetchTimeout">): { fetchTimeoutMs?: number } {
  return fetchTimeout === undefined ? {} : { fetchTimeoutMs: parseDuration(fetchTimeout) };
}

function informerOf(source: ResolvedEventSource, buildFilters: BuildFilters, findKind: FindKind): InformerModel {
  const { name, spec, path, resource } = source;
  const activation = activationOf(source);
  if (resource === undefined) throw new Error(`event source ${name} has no kind`);
  const { mapping, primaryToSecondary, namespaces, labelSelector, fieldSelector, cache, maxCachedObjects } = spec;
  return {
    kind: "informer",
    ...{ name, resource },
    mapping:
      mapping === undefined && primaryToSecondary !== undefined
        ? { kind: "primaryToSecondary" as const }
        : mappingOf(mapping),
    ...(primaryToSecondary === undefined
      ? {}
      : { primaryToSecondary: { kind: "function" as const, name: primaryToSecondary.function } }),
    ...(namespaces === undefined || namespaces === "sameAsController" ? {} : { namespaces }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    filters: buildFilters(spec.filters, path),
    cache: buildCache(cache),
    ...(maxCachedObjects === undefined ? {} : { maxCachedObjects }),
    ...(activation === undefined ? {} : { activationCondition: buildBuiltin(activation, findKind) }),
  };
}

function mappingOf(mapping: MappingSpec = "ownerReference"): MappingModel {
  if (mapping === "ownerReference") return { kind: "ownerReference" };
  if (mapping.function !== undefined) return { kind: "function", name: mapping.function };
  if (mapping.label !== undefined) return { kind: "label", keys: mapping.label };
  if (mapping.annotation !== undefined) return { kind: "annotation", keys: mapping.annotation };
  throw new Error("a mapping was not checked");
}

function buildCache(cache: CacheSpec = "full"): CacheModel {
  if (typeof cache === "string") return { kind: cache };
  const paths = cache.paths.filter((path) => !IDENTITY_FIELDS.has(path.split(".")[0] ?? ""));
  return paths.length === 0 ? { kind: "metadata" } : { kind: "paths", paths: Object.freeze(paths.sort()) };
}
