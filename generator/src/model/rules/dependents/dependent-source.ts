import { didYouMean, quote, type Diagnostic } from "../../../diagnostic.js";
import type { YamlPath } from "../../../input/yaml/yaml-document.js";
import { formatKind } from "../../build/resource-catalog.js";
import {
  ruleOfController,
  type ResolvedController,
  type ResolvedDependent,
  type ResolvedEventSource,
} from "../../build/resolved-project.js";

/** Finds dependents whose event source does not know their objects, and read-only dependents without an event source. */
export const checkDependentSource = ruleOfController((controller) => [
  ...controller.dependents.flatMap((dependent) => checkSource(dependent, controller)),
  ...checkShared(controller),
]);

function checkSource(dependent: ResolvedDependent, controller: ResolvedController): Diagnostic[] {
  const { name, spec, path } = dependent;
  const { document } = controller.spec;
  const named = spec.external === undefined ? spec.eventSource : spec.external.eventSource;
  if (named === undefined) {
    if (spec.mode !== "readOnly" || spec.ref !== undefined) return [];
    return [
      fail(
        `dependent ${quote(name)} is read-only, and no event source maps its objects to a primary`,
        document.valueAt([...path, "mode"]),
        "name an event source that maps them to their primary: eventSource:",
      ),
    ];
  }
  const at = [...path, ...(spec.external === undefined ? [] : ["external"]), "eventSource"];
  const source = controller.eventSources.find((other) => other.name === named);
  if (source === undefined) {
    const names = controller.eventSources.map((other) => other.name);
    const listed =
      names.length === 0 ? "declare it under eventSources" : `known event sources: ${names.map(quote).join(", ")}`;
    const hint = didYouMean(named, names)?.hint ?? listed;
    return [
      fail(
        `${quote(named)} is no event source of controller ${quote(controller.spec.name)}`,
        document.valueAt(at),
        hint,
      ),
    ];
  }
  const problem = problemOf(dependent, source);
  return problem === undefined ? [] : [fail(problem.message, document.valueAt(at), problem.hint)];
}

function problemOf(
  { name, spec, resource }: ResolvedDependent,
  source: ResolvedEventSource,
): { readonly message: string; readonly hint: string } | undefined {
  const { cache, maxCachedObjects } = source.spec;
  if (spec.external !== undefined) {
    if (source.spec.resource === undefined) return undefined;
    return {
      message: `event source ${quote(source.name)} watches a kind of Kubernetes, but dependent ${quote(name)} is external`,
      hint: "state resource: instead of external:, or name an event source with poll, perPrimaryPoll or inbound",
    };
  }
  if (source.resource !== resource)
    return {
      message: `event source ${quote(source.name)} ${source.resource === undefined ? "watches no kind" : `watches ${formatKind(source.resource)}`}, but dependent ${quote(name)} is ${resource === undefined ? "of another" : `a ${formatKind(resource)}`}`,
      hint: "name an event source of the same kind",
    };
  if (spec.cluster !== undefined)
    return {
      message: `event source ${quote(source.name)} watches the cluster of the operator, but dependent ${quote(name)} is in cluster ${quote(spec.cluster)}`,
      hint: "remove eventSource or cluster",
    };
  if ((cache !== undefined && cache !== "full") || maxCachedObjects !== undefined)
    return {
      message: `event source ${quote(source.name)} does not cache every object whole, but dependent ${quote(name)} compares whole objects`,
      hint: `remove ${cache === undefined || cache === "full" ? "maxCachedObjects" : "cache"} of the event source`,
    };
  return undefined;
}

// The watch would have to follow the conditions of all of them at once.
function checkShared({ spec: { document }, dependents }: ResolvedController): Diagnostic[] {
  const first = new Map<string, string>();
  return dependents.flatMap(({ name, spec: { eventSource, activationCondition }, path }) => {
    if (eventSource === undefined || activationCondition === undefined) return [];
    const other = first.get(eventSource);
    if (other === undefined) {
      first.set(eventSource, name);
      return [];
    }
    const at: YamlPath = [...path, "eventSource"];
    return [
      fail(
        `dependents ${quote(name)} and ${quote(other)} share event source ${quote(eventSource)}, and each has an activationCondition of its own`,
        document.valueAt(at),
        "leave one of them its own watch: remove its eventSource",
      ),
    ];
  });
}

function fail(message: string, place: object, hint: string): Diagnostic {
  return { severity: "error", rule: "dependent-source", message, ...place, hint };
}
