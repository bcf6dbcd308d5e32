import type {
  ControllerModel,
  EventSourceModel,
  FormModel,
  InformerModel,
  MappingModel,
} from "../model/project-model.js";
import { nameOrThrow, sourceNamesOf, type ControllerNames } from "./controller-names.js";
import { renderFilters } from "./filtered.js";
import { printLine } from "./print-value.js";
import type { EventSourceValue } from "./runtime-symbols.js";

/** The mappers of the runtime; without one, it asks `primaryToSecondary`. */
const MAPPERS = { ownerReference: "byOwnerReference", label: "byLabel", annotation: "byAnnotation" } as const;

const FACTORIES = {
  informer: "informerSource",
  poll: "pollingSource",
  perPrimaryPoll: "perPrimaryPollingSource",
  inbound: "cachingInboundSource",
} as const;

/** Returns what the event sources of a controller need of the runtime. */
export function runtimeValuesOf({ eventSources }: ControllerModel): EventSourceValue[] {
  const used = eventSources.flatMap((source): EventSourceValue[] => [
    FACTORIES[source.kind],
    ...(source.kind === "informer" && usesMapper(source.mapping) ? [MAPPERS[source.mapping.kind]] : []),
  ]);
  return [...new Set(used)].sort();
}

/** Tells whether an event source needs functions of the user's. */
export function needsFunctions(source: EventSourceModel): boolean {
  return source.kind !== "informer" || source.mapping.kind === "function" || source.primaryToSecondary !== undefined;
}

/** Renders the `eventSources` of a controller; undefined if it has none. */
export function renderEventSources({ eventSources }: ControllerModel, names: ControllerNames): string | undefined {
  if (eventSources.length === 0) return undefined;
  const sources = eventSources.map((source) =>
    source.kind === "inbound" ? sourceNamesOf(source).source : renderSource(source, names),
  );
  return `() => [${sources.join(",\n")}]`;
}

/** Renders the event sources to which the user's code pushes: it has to reach them. */
export function renderInboundSources({ eventSources }: ControllerModel, names: ControllerNames): string[] {
  return eventSources
    .filter(({ kind }) => kind === "inbound")
    .map((source) => {
      const doc = `/** The event source "${source.name}": what it is given is reconciled. */`;
      return `\n${doc}\nexport const ${sourceNamesOf(source).source} = ${renderSource(source, names)};`;
    });
}

function renderSource(source: EventSourceModel, names: ControllerNames): string {
  const options = source.kind === "informer" ? informerOptions(source, names) : externalOptions(source);
  const typeArgument = source.kind !== "inbound" ? "" : `<${sourceNamesOf(source).resource}>`;
  return `${FACTORIES[source.kind]}${typeArgument}({ name: ${JSON.stringify(source.name)},\n${options.join(",\n")} })`;
}

function informerOptions(source: InformerModel, names: ControllerNames): string[] {
  const { namespaces, labelSelector, fieldSelector, maxCachedObjects } = source;
  const { module, resource } = sourceNamesOf(source);
  const stated = { namespaces, labelSelector, fieldSelector, form: formValueOf(source.form), maxCachedObjects };
  const filters = renderFilters(source.filters, resource);
  return [
    `resource: ${nameOrThrow(names.resources, source.resource).localName}`,
    ...renderMapper(source, names),
    ...(source.primaryToSecondary === undefined
      ? []
      : [`primaryToSecondary: ${module}.${source.primaryToSecondary.name}`]),
    ...Object.entries(stated).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${printLine(value)}`])),
    ...(filters === undefined ? [] : [`filters: ${filters}`]),
  ];
}

function renderMapper(source: InformerModel, { primary }: ControllerNames): string[] {
  const { mapping } = source;
  if (mapping.kind === "function") return [`mapper: ${sourceNamesOf(source).module}.${mapping.name}`];
  if (!usesMapper(mapping)) return [];
  const keys = mapping.kind === "ownerReference" ? "" : `, ${printLine(mapping.keys)}`;
  return [`mapper: ${MAPPERS[mapping.kind]}(${primary}${keys})`];
}

/** Tells whether a mapping is one of the runtime's, which have to know the kind of the primary. */
export function usesMapper(mapping: MappingModel): mapping is Extract<MappingModel, { kind: keyof typeof MAPPERS }> {
  return Object.hasOwn(MAPPERS, mapping.kind);
}

function formValueOf(form: FormModel): unknown {
  if (form.kind === "full") return undefined;
  return form.kind === "metadata" ? "metadata" : { paths: form.paths };
}

function externalOptions(source: Exclude<EventSourceModel, InformerModel>): string[] {
  const { module } = sourceNamesOf(source);
  const idOf = `idOf: ${module}.idOf`;
  if (source.kind === "inbound") return [idOf];
  const { intervalMs, fetchTimeoutMs } = source;
  return [
    `intervalMs: ${intervalMs}`,
    ...(fetchTimeoutMs === undefined ? [] : [`fetchTimeoutMs: ${fetchTimeoutMs}`]),
    `fetch: ${module}.fetch`,
    idOf,
  ];
}
