// Rights as the rules of roles: each right once, in the role that holds most widely.
import type { ControllerModel, ExtraRuleSpec } from "../../model/project-model.js";
import { EVERYWHERE, OWN_NAMESPACE, placesOf, VERBS, type Grant } from "./grants.js";

/** A rule of a role, with the reasons for it. */
export interface Rule extends Omit<ExtraRuleSpec, "namespaces"> {
  readonly because: readonly string[];
}

/** The rules that hold in one place: everywhere, in the operator's own namespace, or in another. */
export interface Role {
  readonly place: string;
  readonly rules: readonly Rule[];
}

/** Returns the roles for rights in one cluster, the cluster-wide one first. */
export function rolesOf(grants: readonly Grant[], controllers: readonly ControllerModel[]): Role[] {
  const extra = controllers.flatMap(extraRules);
  const places = new Set([...grants, ...extra].map(({ place }) => place).sort());
  const everywhere = mergeGrants(grants.filter(({ place }) => place === EVERYWHERE));
  return [...places]
    .map((place) => {
      const merged =
        place === EVERYWHERE
          ? everywhere
          : without(mergeGrants(grants.filter((each) => each.place === place)), everywhere);
      const own = extra.filter((each) => each.place === place).map(({ rule }) => rule);
      return { place, rules: [...rulesOf(withoutNamed(merged)), ...own] };
    })
    .filter(({ rules }) => rules.length > 0);
}

interface Merged extends Omit<Grant, "verbs" | "because" | "place"> {
  readonly verbs: ReadonlySet<string>;
  readonly because: ReadonlySet<string>;
}

// One entry for each resource, or named objects of it.
function mergeGrants(grants: readonly Grant[]): Merged[] {
  const merged = new Map<string, Merged & { verbs: Set<string>; because: Set<string> }>();
  for (const { group, resource, names, verbs, because } of grants) {
    const key = JSON.stringify([group, resource, names]);
    const known = merged.get(key) ?? { group, resource, ...(names && { names }), verbs: new Set(), because: new Set() };
    for (const verb of verbs) known.verbs.add(verb);
    known.because.add(because);
    merged.set(key, known);
  }
  return [...merged.values()];
}

// What may be done to all objects needs not be stated for some.
function withoutNamed(merged: readonly Merged[]): Merged[] {
  const ofAll = merged.filter(({ names }) => names === undefined);
  const ofSome = merged.filter(({ names }) => names !== undefined);
  return [...without(ofSome, ofAll), ...ofAll];
}

function without(merged: readonly Merged[], wider: readonly Merged[]): Merged[] {
  return merged.flatMap((each) => {
    const covers = ({ group, resource, names }: Merged) =>
      group === each.group &&
      resource === each.resource &&
      (names === undefined || String(names) === String(each.names));
    const covered = new Set(wider.filter(covers).flatMap(({ verbs }) => [...verbs]));
    const verbs = new Set([...each.verbs].filter((verb) => !covered.has(verb)));
    return verbs.size === 0 ? [] : [{ ...each, verbs }];
  });
}

// Resources of one group with the same verbs become one rule, and so do named objects of one kind.
function rulesOf(merged: readonly Merged[]): Rule[] {
  const rules = new Map<string, { readonly members: Merged[]; readonly verbs: readonly string[] }>();
  for (const each of merged) {
    const verbs = VERBS.filter((verb) => each.verbs.has(verb));
    const key = JSON.stringify([each.group, each.names && each.resource, verbs]);
    const known = rules.get(key) ?? { members: [], verbs };
    known.members.push(each);
    rules.set(key, known);
  }
  return [...rules.values()].map(ruleOf).sort((a, b) => (sortKeyOf(a) < sortKeyOf(b) ? -1 : 1));
}

function ruleOf({ members, verbs }: { readonly members: readonly Merged[]; readonly verbs: readonly string[] }): Rule {
  const names = distinct(members.flatMap((each) => each.names ?? []));
  return {
    because: [...new Set(members.flatMap((each) => [...each.because]))],
    apiGroups: distinct(members.map(({ group }) => group)),
    resources: distinct(members.map(({ resource }) => resource)),
    ...(names.length > 0 && { resourceNames: names }),
    verbs,
  };
}

function distinct(words: readonly string[]): string[] {
  return [...new Set(words)].sort();
}

function sortKeyOf({ apiGroups, resources, resourceNames, verbs }: Rule): string {
  return JSON.stringify([apiGroups, resources, resourceNames ?? [], verbs]);
}

function extraRules(controller: ControllerModel): { readonly place: string; readonly rule: Rule }[] {
  const { name, extraRules: extra = [] } = controller;
  return extra.flatMap(({ namespaces = "sameAsController", ...stated }) => {
    const rule = { because: [`rbac.extra of ${name}`], ...stated };
    // What is no resource is in no namespace.
    if (stated.nonResourceURLs !== undefined || namespaces === "all") return [{ place: EVERYWHERE, rule }];
    const own = namespaces === "current" ? [OWN_NAMESPACE] : namespaces;
    const places = own === "sameAsController" ? placesOf(controller) : own;
    return places.map((place) => ({ place, rule }));
  });
}
