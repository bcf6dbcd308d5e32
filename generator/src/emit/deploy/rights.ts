// The requests of the runtime for a controller, as permissions with their reasons. The tests in test/control-plane/deploy/ run operators with only
// these rules, and so detect permissions that are missing or not needed.
import {
  type ControllerModel,
  type DependentModel,
  type EventSourceModel,
  type ExtraRuleSpec,
  type InformerModel,
  type KubernetesDependentModel,
  type ResourceModel,
  isKubernetes,
  presenceChecksOf,
} from "../../model/project-model.js";

/** Verbs of the API server, in the order in which rules list them. */
export const VERBS = ["get", "list", "watch", "create", "update", "patch", "delete"] as const;

/** A verb on a resource. */
export type Verb = (typeof VERBS)[number];

/** All namespaces, and cluster-scoped objects. Any other place is a namespace. */
export const EVERYWHERE = "*";

/** The namespace of the operator. */
export const OWN_NAMESPACE = "";

/** A required permission, with its reason. */
export interface Grant {
  readonly group: string;
  /** Plural of a kind, or a subresource such as `webpages/status`. */
  readonly resource: string;
  readonly verbs: readonly Verb[];
  /** Names of the only objects to which the permission applies. Default: all */
  readonly names?: readonly string[];
  /** A namespace, {@link EVERYWHERE}, or {@link OWN_NAMESPACE}. */
  readonly place: string;
  /** Name of another cluster. Default: the cluster of the operator */
  readonly cluster?: string;
  readonly because: string;
}

type Right = Pick<Grant, "verbs" | "names" | "because"> & { readonly part?: string; readonly cluster?: string };

const WATCHED: readonly Verb[] = ["list", "watch"];
const CRD = { group: "apiextensions.k8s.io", plural: "customresourcedefinitions", scope: "Cluster" } as const;
const EVENT = { group: "events.k8s.io", plural: "events", scope: "Namespaced" } as const;
const LEASE = { group: "coordination.k8s.io", plural: "leases", scope: "Namespaced" } as const;
/** Kinds in which ids of external resources are stored. */
export const STATES = {
  configMap: { group: "", plural: "configmaps", scope: "Namespaced" },
  secret: { group: "", plural: "secrets", scope: "Namespaced" },
} as const;
/** Default name of the Secret with the key for proofs. */
const PROOF_KEY = "gen-operator-proof-key";
/** Namespace of Events about cluster-scoped objects. */
const EVENTS_OF_CLUSTER = "default";

type Granted = Pick<ResourceModel, "group" | "plural" | "scope">;

/** Returns the permissions for leader election with a Lease. */
export function leaderGrants(name: string): Grant[] {
  const because = "leader election";
  const place = [OWN_NAMESPACE];
  return [
    // RBAC cannot restrict create by name, because the name is not known at authorization time.
    ...grant(LEASE, place, { verbs: ["create"], because }),
    ...grant(LEASE, place, { verbs: ["get", "watch", "update"], names: [name], because }),
  ];
}

// The operator proves what it has stored itself with a key in a Secret of its own namespace. Each controller patches a mark into that Secret.
function proofGrants(because: string): Grant[] {
  const place = [OWN_NAMESPACE];
  return [
    ...grant(STATES.secret, place, { verbs: ["create"], because }),
    ...grant(STATES.secret, place, { verbs: ["get", "patch"], names: [PROOF_KEY], because }),
  ];
}

/** Returns the permissions that a controller requires. */
export function controllerGrants(controller: ControllerModel): Grant[] {
  const { name, primary, dependents, eventSources, removed = [] } = controller;
  const places = placesOf(controller);
  return [
    ...primaryGrants(controller, places),
    ...dependents.flatMap((each) => dependentGrants(each, controller)),
    ...eventSources.flatMap((each) => eventSourceGrants(each, places, name)),
    ...removed.flatMap(({ name: former, resource, deletion, namespace, cluster }) => {
      if (deletion === "garbageCollected") return [];
      const verbs: readonly Verb[] = deletion === "orphan" ? ["get", ...WATCHED, "patch"] : [...WATCHED, "delete"];
      const because = `removed dependent ${former} of ${name}`;
      return grant(resource, namespace === undefined ? places : [namespace], {
        verbs,
        because,
        ...(cluster && { cluster }),
      });
    }),
    ...grant(EVENT, primary.scope === "Cluster" ? [EVENTS_OF_CLUSTER] : places, {
      verbs: ["create", "patch"],
      because: `Events of ${name}`,
    }),
    ...crdGrants(controller),
    ...linkGrants(controller),
  ];
}

// Links of objects that are neither in the namespace of their primary nor in the namespace set by the dependent require a proof.
function linkGrants({ name, primary, dependents }: ControllerModel): Grant[] {
  const isProven = (dependent: DependentModel) => {
    if (!isKubernetes(dependent) || !isWritten(dependent) || dependent.namespace !== undefined) return false;
    const { deletion, resource } = dependent;
    return deletion !== "garbageCollected" || (primary.scope === "Cluster" && resource.scope === "Namespaced");
  };
  return dependents.some(isProven) ? proofGrants(`proofs of links of ${name}`) : [];
}

function primaryGrants(controller: ControllerModel, places: readonly string[]): Grant[] {
  const { name, primary, dependents } = controller;
  // Patching is also required without a finalizer: the operator removes finalizers that an earlier version has set.
  const because = `primary of ${name}`;
  const isOwner = dependents.some(
    (each) => isKubernetes(each) && isWritten(each) && each.deletion === "garbageCollected",
  );
  return [
    ...grant(primary, places, { verbs: ["get", ...WATCHED, "patch"], because }),
    ...(primary.hasStatusSubresource ? grant(primary, places, { verbs: ["patch"], part: "status", because }) : []),
    // Required by the admission plugin OwnerReferencesPermissionEnforcement for owner references with blockOwnerDeletion.
    ...(isOwner
      ? grant(primary, places, { verbs: ["update"], part: "finalizers", because: `owner references of ${name}` })
      : []),
  ];
}

function dependentGrants(dependent: DependentModel, controller: ControllerModel): Grant[] {
  const { name } = dependent;
  const because = `dependent ${name} of ${controller.name}`;
  const places = placesOf(controller);
  if (!isKubernetes(dependent)) {
    const { state } = dependent.external;
    if (state === undefined) return [];
    const proofs = proofGrants(`proofs of ${because}`);
    if (state.kind === "status") return proofs;
    const kind = state.kind === "resource" ? state.resource : STATES[state.kind];
    // An object that the watch does not deliver is read by name.
    const verbs: readonly Verb[] = ["get", ...WATCHED, "create", "patch", "delete"];
    return [...proofs, ...grant(kind, places, { verbs, because: `state of ${because}` })];
  }
  const { resource, cluster, eventSource, ref, fieldSelector } = dependent;
  const there = placesOfDependent(dependent, places);
  const elsewhere = cluster === undefined ? {} : { cluster };
  const grants: Grant[] = [];
  if (eventSource === undefined) {
    const named = ref?.name.kind === "constant" ? { names: [ref.name.text] } : namesIn(fieldSelector);
    const names = isWritten(dependent) ? {} : named;
    grants.push(...grant(resource, there, { verbs: WATCHED, because, ...names, ...elsewhere }));
  }
  if (dependent.mode === "once") {
    const verbs: readonly Verb[] = ["get", ...WATCHED, "create", "patch", "delete"];
    const runs = `runs of ${because}`;
    grants.push(...proofGrants(`proofs of ${runs}`), ...grant(STATES.configMap, places, { verbs, because: runs }));
  }
  if (isWritten(dependent))
    grants.push(...grant(resource, there, { verbs: verbsOfWrites(dependent), because, ...elsewhere }));
  if (dependent.heldForCleanup === true) {
    const names = ref?.name.kind === "constant" ? { names: [ref.name.text] } : {};
    const held = `heldForCleanup of ${because}`;
    grants.push(...grant(resource, there, { verbs: ["get", "patch"], because: held, ...names, ...elsewhere }));
  }
  return grants;
}

// A `ref` with a computed namespace may refer to any namespace.
function placesOfDependent({ namespace, ref }: KubernetesDependentModel, places: readonly string[]): readonly string[] {
  if (namespace !== undefined) return [namespace];
  if (ref?.namespace === undefined) return places;
  return [ref.namespace.kind === "constant" ? ref.namespace.text : EVERYWHERE];
}

// A server-side apply that creates an object requires both create and patch.
function verbsOfWrites(dependent: KubernetesDependentModel): readonly Verb[] {
  const { mode, operations = {}, deletion, existing, conditions, serverSideApply = true } = dependent;
  const mayAdopt = existing === "adopt" || conditions.existing !== undefined;
  const isCreated = operations.create !== false;
  const isUpdated = operations.update !== false && mode !== "createOnly" && mode !== "once";
  const isOrphaned = deletion === "orphan" && operations.delete !== false;
  const verbs = new Set<Verb>(["get"]);
  if (isCreated) verbs.add("create");
  if (!serverSideApply && (isUpdated || mayAdopt)) verbs.add("update");
  // Patching is also required without apply: a removed label is restored, and the link to the primary is removed on orphaning.
  if (isCreated || isOrphaned || (serverSideApply && isUpdated)) verbs.add("patch");
  if (deletion !== "orphan" && operations.delete !== false) verbs.add("delete");
  return [...verbs];
}

function eventSourceGrants(source: EventSourceModel, places: readonly string[], controller: string): Grant[] {
  if (source.kind !== "informer") return [];
  const { name, resource, fieldSelector, maxCachedObjects } = source;
  const verbs: readonly Verb[] = maxCachedObjects === undefined ? WATCHED : ["get", ...WATCHED];
  const because = `event source ${name} of ${controller}`;
  return grant(resource, placesOfSource(source, places), { verbs, because, ...namesIn(fieldSelector) });
}

function placesOfSource({ namespaces }: InformerModel, places: readonly string[]): readonly string[] {
  if (namespaces === undefined) return places;
  if (namespaces === "current") return [OWN_NAMESPACE];
  return namespaces === "all" ? [EVERYWHERE] : namespaces;
}

// The `--check-crds` option reads CRDs at startup, and crdPresent conditions watch them.
function crdGrants(controller: ControllerModel): Grant[] {
  const { name, primary, dependents } = controller;
  const needed = dependents
    .filter(isKubernetes)
    .filter(({ conditions }) => conditions.activationCondition === undefined);
  const checked = [{ resource: primary }, ...needed].flatMap((each) => ({ cluster: undefined, ...each }));
  // In another cluster, CRDs are read instead of watched.
  const awaited = presenceChecksOf(controller).filter(({ isElsewhere }) => !isElsewhere);
  return [
    ...checked.flatMap(({ resource, cluster }) =>
      crdGrant(resource, { verbs: ["get"], because: `check of the CRDs of ${name}`, ...(cluster && { cluster }) }),
    ),
    ...awaited.flatMap(({ resource, about }) =>
      crdGrant(resource, { verbs: WATCHED, because: `crdPresent of ${about} of ${name}` }),
    ),
  ];
}

function crdGrant({ isCustom, plural, group }: ResourceModel, right: Right): Grant[] {
  return isCustom ? grant(CRD, [EVERYWHERE], { ...right, names: [`${plural}.${group}`] }) : [];
}

/** Returns the namespaces that a controller watches. */
function placesOf({ settings: { namespaces } }: ControllerModel): readonly string[] {
  if (namespaces === undefined) return [EVERYWHERE];
  return namespaces === "current" ? [OWN_NAMESPACE] : namespaces;
}

// The API server authorizes a list or watch with such a field selector as a request for the named object.
function namesIn(fieldSelector: string | undefined): Pick<Grant, "names"> {
  const name = fieldSelector?.split(",").flatMap((term) => /^metadata\.name==?(.+)$/.exec(term.trim())?.[1] ?? [])[0];
  return name === undefined ? {} : { names: [name] };
}

function grant({ group, plural, scope }: Granted, places: readonly string[], { part, ...right }: Right): Grant[] {
  const resource = part === undefined ? plural : `${plural}/${part}`;
  const where = scope === "Cluster" ? [EVERYWHERE] : places;
  return where.map((place) => ({ group, resource, place, ...right }));
}

function isWritten({ mode }: KubernetesDependentModel): boolean {
  return mode !== "readOnly";
}

// Converts permissions to roles. Each permission is granted once, in the role with the widest scope.

/** A rule of a role, with its reasons. */
export interface Rule extends Omit<ExtraRuleSpec, "namespaces"> {
  readonly because: readonly string[];
}

/** The rules for one place: all namespaces, the namespace of the operator, or another namespace. */
export interface Role {
  readonly place: string;
  readonly rules: readonly Rule[];
}

/** Returns the roles for permissions in one cluster. */
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

// Merges the permissions of a resource, or of the same named objects of it.
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

// Permissions on all objects make those on named objects redundant.
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

// Resources of a group with the same verbs are combined into one rule, and so are named objects of a kind.
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
    // Non-resource URLs can only be granted by a ClusterRole.
    if (stated.nonResourceURLs !== undefined || namespaces === "all") return [{ place: EVERYWHERE, rule }];
    const own = namespaces === "current" ? [OWN_NAMESPACE] : namespaces;
    const places = own === "sameAsController" ? placesOf(controller) : own;
    return places.map((place) => ({ place, rule }));
  });
}
