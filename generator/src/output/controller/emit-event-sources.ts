import type {
  ControllerModel,
  EventSourceModel,
  CacheModel,
  InformerModel,
  MappingModel,
} from "../../model/project-model.js";
import { sourceNamesOf, type ControllerNames } from "../controller-names.js";
import { builtinDoc, builtinValuesOf } from "./builtin-condition.js";
import { resourceDoc } from "./class-imports.js";
import { filtersDoc } from "./filtered.js";
import { arrayDoc, callDoc, field, fieldsOf, textField } from "../print/code.js";
import { printConstant } from "../print/declarations.js";
import type { Doc } from "../print/layout.js";
import type { EventSourceValue } from "../runtime-symbols.js";

type RuntimeValue = EventSourceValue | ReturnType<typeof builtinValuesOf>[number];

/** The mappers of the runtime; without one, it asks `primaryToSecondary`. */
const MAPPERS = { ownerReference: "byOwnerReference", label: "byLabel", annotation: "byAnnotation" } as const;

const FACTORIES = {
  informer: "informerSource",
  poll: "pollingSource",
  perPrimaryPoll: "perPrimaryPollingSource",
  inbound: "cachingInboundSource",
} as const;

/** Returns what the event sources of a controller need of the runtime. */
export function runtimeValuesOf({ eventSources }: ControllerModel): RuntimeValue[] {
  const used = eventSources.flatMap((source): RuntimeValue[] => [
    FACTORIES[source.kind],
    ...(source.kind === "informer" && usesMapper(source.mapping) ? [MAPPERS[source.mapping.kind]] : []),
    ...(source.kind === "informer" && source.activationCondition !== undefined
      ? builtinValuesOf(source.activationCondition)
      : []),
  ]);
  return [...new Set(used)].sort();
}

/** Tells whether an event source needs functions of the user's. */
export function needsFunctions(source: EventSourceModel): boolean {
  return source.kind !== "informer" || source.mapping.kind === "function" || source.primaryToSecondary !== undefined;
}

/** Prints the `eventSources` of a controller; undefined if it has none. */
export function eventSourcesDoc({ eventSources }: ControllerModel, names: ControllerNames): Doc | undefined {
  if (eventSources.length === 0) return undefined;
  const sources = eventSources.map((source) =>
    source.kind === "inbound" ? sourceNamesOf(source).source : sourceDoc(source, names),
  );
  return ["() => ", arrayDoc(sources)];
}

/** Prints the event sources to which the user's code pushes: it has to reach them. */
export function printInboundSources({ eventSources }: ControllerModel, names: ControllerNames): string[] {
  return eventSources
    .filter(({ kind }) => kind === "inbound")
    .map((source) => {
      const doc = `/** The event source "${source.name}": what it is given is reconciled. */`;
      return `${doc}\n${printConstant(sourceNamesOf(source).source, sourceDoc(source, names))}`;
    });
}

function sourceDoc(source: EventSourceModel, names: ControllerNames): Doc {
  const options = source.kind === "informer" ? informerOptions(source, names) : externalOptions(source);
  const typeArgument = source.kind !== "inbound" ? "" : `<${sourceNamesOf(source).resource}>`;
  return callDoc(`${FACTORIES[source.kind]}${typeArgument}`, [], [...fieldsOf({ name: source.name }), ...options]);
}

function informerOptions(source: InformerModel, names: ControllerNames): Doc[] {
  const { namespaces, labelSelector, fieldSelector, maxCachedObjects, activationCondition: activation } = source;
  const { module, resource } = sourceNamesOf(source);
  const filters = filtersDoc(source.filters, resource);
  return [
    field("resource", resourceDoc(source.resource, names)),
    ...mapperOf(source, names),
    ...(source.primaryToSecondary === undefined
      ? []
      : [textField("primaryToSecondary", `${module}.${source.primaryToSecondary.name}`)]),
    ...fieldsOf({ namespaces, labelSelector, fieldSelector, cache: cacheValueOf(source.cache), maxCachedObjects }),
    ...(filters === undefined ? [] : [field("filters", filters)]),
    ...(activation === undefined ? [] : [field("activationCondition", builtinDoc(activation, names))]),
  ];
}

function mapperOf(source: InformerModel, { primary }: ControllerNames): Doc[] {
  const { mapping } = source;
  if (mapping.kind === "function") return [textField("mapper", `${sourceNamesOf(source).module}.${mapping.name}`)];
  if (!usesMapper(mapping)) return [];
  const keys = mapping.kind === "ownerReference" ? undefined : fieldsOf({ ...mapping.keys });
  return [field("mapper", callDoc(MAPPERS[mapping.kind], [primary], keys))];
}

/** Tells whether a mapping is one of the runtime's, which have to know the kind of the primary. */
export function usesMapper(mapping: MappingModel): mapping is Extract<MappingModel, { kind: keyof typeof MAPPERS }> {
  return Object.hasOwn(MAPPERS, mapping.kind);
}

function cacheValueOf(cache: CacheModel): unknown {
  if (cache.kind === "full") return undefined;
  return cache.kind === "metadata" ? "metadata" : { paths: cache.paths };
}

function externalOptions(source: Exclude<EventSourceModel, InformerModel>): Doc[] {
  const { module } = sourceNamesOf(source);
  const idOf = textField("idOf", `${module}.idOf`);
  if (source.kind === "inbound") return [idOf];
  const { intervalMs, fetchTimeoutMs } = source;
  return [...fieldsOf({ intervalMs, fetchTimeoutMs }), textField("fetch", `${module}.fetch`), idOf];
}
