import { memberOf } from "../base/kubernetes-object.js";
import { kindNameOf, type ResourceDefinition } from "../base/resource-definition.js";
import { seesRemoved } from "../workflow/prune/leftovers.js";
import {
  deletionOf,
  isKubernetes,
  ownsData,
  type DependentDefinition,
  type ExternalDependent,
  type KubernetesDependent,
  type ObjectState,
  type WorkflowDefinition,
} from "../workflow/definition/workflow-definition.js";
import type { ControllerDefinition } from "../reconcile/controller-definition.js";

/** Makes the error of a problem that a controller has. */
export type Fail = (problem: string) => Error;

/** Throws if the settings of a dependent of any workflow contradict each other, saying which and what to do. */
export function checkDependents({ workflow, workflows = {} }: ControllerDefinition, fail: Fail): void {
  const named = Object.entries(workflows).map(([name, each]) => ({ each, where: ` in its workflow "${name}"` }));
  for (const { each, where } of [{ each: workflow, where: "" }, ...named]) {
    checkWorkflow(each, fail);
    if (each !== workflow && each.removed !== undefined)
      throw fail(`states${where} what is removed, and that is for its own one to say; state it there`);
    const present = each.dependents.find((dependent) => isRemoved(dependent, dependent.name, workflow));
    if (present !== undefined)
      throw fail(`says that dependent "${present.name}" is removed, and has it${where}; take it out of one of them`);
  }
}

function checkWorkflow(workflow: WorkflowDefinition, fail: Fail): void {
  const { dependents, primary } = workflow;
  const owners = new Map(dependents.map(({ name }) => [name, name]));
  for (const dependent of dependents) {
    const { name, movedFrom = [] } = dependent;
    const problem = isKubernetes(dependent)
      ? problemOfObject(dependent, primary)
      : problemOfExternal(dependent, primary);
    if (problem !== undefined) throw fail(`has the dependent "${name}", which ${problem}`);
    for (const former of movedFrom) {
      if (isRemoved(dependent, former, workflow))
        throw fail(`says that dependent "${former}" moved to "${name}", and that it is removed; state one of the two`);
      const other = owners.get(former);
      if (other !== undefined)
        throw fail(`says that dependent "${former}" moved to "${name}", and it is "${other}"; state it once`);
      owners.set(former, name);
    }
  }
  checkShared(workflow, fail);
}

// An entry about objects that the dependent does not see is about those that it left elsewhere.
function isRemoved(dependent: DependentDefinition, name: string, { removed = {} }: WorkflowDefinition): boolean {
  const stated = memberOf(removed, name);
  return stated !== undefined && seesRemoved(dependent, stated);
}

// Each would take the resources of the other for its own, and a bulk dependent would delete them.
function checkShared({ dependents }: WorkflowDefinition, fail: Fail): void {
  const users = new Map<string, string>();
  for (const dependent of dependents) {
    if (isKubernetes(dependent) || dependent.source.kind !== "eventSource" || !isAmbiguous(dependent)) continue;
    const { source } = dependent;
    const other = users.get(source.name);
    users.set(source.name, dependent.name);
    if (other !== undefined)
      throw fail(
        `has the dependents "${other}" and "${dependent.name}", which share event source "${source.name}", and nothing says whose a resource is; ` +
          "give each of them isOwn, or let the runtime keep the ids (state)",
      );
  }
}

function isAmbiguous({ isOwn, state, create, update, delete: remove }: ExternalDependent): boolean {
  const isWritten = create !== undefined || update !== undefined || remove !== undefined;
  return isWritten && isOwn === undefined && state === undefined;
}

function problemOfObject(dependent: KubernetesDependent, primary: ResourceDefinition): string | undefined {
  return (
    problemOfReference(dependent, primary) ??
    problemOfMode(dependent) ??
    problemOfOperations(dependent) ??
    problemOfOnce(dependent, primary) ??
    problemOfReleased(dependent) ??
    problemOfImmutable(dependent) ??
    problemOfLink(dependent, primary) ??
    problemOfPlace(dependent)
  );
}

function problemOfExternal(dependent: ExternalDependent, primary: ResourceDefinition): string | undefined {
  const { desired, bulk, create, update, idOf, state, stateOf, source } = dependent;
  const isWritten = create !== undefined || update !== undefined;
  if (isWritten && desired === undefined)
    return "has no desired(); state what it should be, or leave out create and update";
  if (!isWritten && desired !== undefined)
    return "has a desired(), and neither create nor update; leave out desired, or add one of them";
  if (bulk !== undefined && idOf === undefined)
    return "is a bulk dependent without idOf, which tells its items apart; add it";
  if ("intervalMs" in source && !(source.intervalMs > 0))
    return `has ${source.intervalMs} for source.intervalMs; it needs more than 0`;
  if (state === undefined)
    return stateOf === undefined
      ? undefined
      : "says what to keep (stateOf), and not where; state it (state), or leave out stateOf";
  if (idOf === undefined) return "keeps an id (state) and has no idOf that tells it; add it";
  if (create === undefined) return "keeps the id of what it creates (state), and has no create; leave one of them out";
  if (state.kind !== "status") return problemOfState(state, primary, bulk !== undefined);
  if (state.path.length === 0) return "keeps ids in the status, and states no path there";
  if (!primary.hasStatusSubresource)
    return `keeps ids in the status of ${primary.plural}, which lack a status subresource; add it to the definition, or keep them in a ConfigMap`;
  return undefined;
}

// The primary owns the objects, so they are where it is.
function problemOfState(state: ObjectState, primary: ResourceDefinition, isBulk: boolean): string | undefined {
  const names = { configMap: "ConfigMaps", secret: "Secrets" };
  const [kinds, scope] =
    state.kind === "resource" ? [state.resource.plural, state.resource.scope] : [names[state.kind], "Namespaced"];
  if (state.kind === "resource" && state.path.length === 0) return `keeps ids in ${kinds}, and states no path there`;
  if (state.perItem === true && !isBulk) return "keeps an id for each item (perItem), and is no bulk dependent";
  if (scope === primary.scope) return undefined;
  const place = primary.scope === "Cluster" ? "is in no namespace" : "is in a namespace";
  return `keeps ids in ${kinds}, and ${kindNameOf(primary)} ${place}; keep them in its status`;
}

function problemOfOperations({ mode, deletion, operations = {} }: KubernetesDependent): string | undefined {
  if (mode === "createOnly" && operations.update !== undefined)
    return "is createOnly and has an own update; what exists is left as it is";
  if (deletion === "orphan" && operations.delete === false)
    return "is orphaned and never deleted; leave out one of them";
  const isIdle = operations.create === false && (operations.update === false || mode === "createOnly");
  return isIdle ? "is neither created nor updated; make it readOnly" : undefined;
}

function problemOfOnce(
  { mode, again, deletion, operations = {}, matcher, released }: KubernetesDependent,
  primary: ResourceDefinition,
): string | undefined {
  if (mode !== "once")
    return again === undefined ? undefined : 'has again without mode: "once"; add the mode, or remove again';
  if (primary.scope === "Cluster")
    return `has mode: "once", which is remembered in a ConfigMap beside the primary, and ${kindNameOf(primary)} is in no namespace; use "createOnly"`;
  if (operations.create === false)
    return 'has mode: "once", and is created by another client (operations.create); remove one of them';
  const unused = Object.entries({ matcher, released, "operations.update": operations.update }).find(
    ([, each]) => each !== undefined,
  );
  if (unused !== undefined)
    return `has mode: "once", so that it is never updated, and sets ${unused[0]}; remove one of them`;
  if (again !== undefined && (deletion === "orphan" || operations.delete !== undefined))
    return "is created again (again) when the object before is deleted, and the operator does not delete it; remove again, deletion: orphan or operations.delete";
  return undefined;
}

function problemOfReference(dependent: KubernetesDependent, primary: ResourceDefinition): string | undefined {
  const { ref, resource, mode, ...rest } = dependent;
  if (ref === undefined) return undefined;
  if (mode !== "readOnly") return "names its object (ref), and is not readOnly; such an object is only read";
  const settings = ["bulk", "itemsDependOn", "eventSource", "namespace"] as const;
  const needless = settings.find((name) => rest[name] !== undefined);
  if (needless !== undefined)
    return `names its object (ref) and states ${needless}; leave it out${needless === "namespace" ? ", or state ref.namespace" : ""}`;
  if (resource.scope === "Cluster" && ref.namespace !== undefined)
    return `names its object in a namespace (ref.namespace), and ${kindNameOf(resource)} is cluster-scoped; leave the namespace out`;
  if (resource.scope === "Namespaced" && primary.scope === "Cluster" && ref.namespace === undefined)
    return `names its object without a namespace, and ${kindNameOf(primary)} is in none; state ref.namespace`;
  return undefined;
}

function problemOfMode({ mode = "managed", desired, ...rest }: KubernetesDependent): string | undefined {
  if (mode !== "readOnly")
    return desired === undefined
      ? "has no desired(); state what it should be, or make it readOnly if somebody else makes it"
      : undefined;
  if (desired !== undefined) return "is readOnly and has a desired(); leave one of them out";
  const settings = [
    "deletion",
    "existing",
    "onImmutable",
    "serverSideApply",
    "fieldManager",
    "released",
    "matcher",
    "operations",
  ] as const;
  const needless = settings.find((name) => rest[name] !== undefined);
  return needless === undefined ? undefined : `is readOnly and states ${needless}; what is only read is never written`;
}

function problemOfReleased({ released = [] }: KubernetesDependent): string | undefined {
  const invalid = released.find((path) => !/^(?!(apiVersion|kind|metadata|status)\b)[\w-]+(\.[\w-]+)*$/.test(path));
  if (invalid === undefined) return undefined;
  return `releases "${invalid}"; state the path of a field outside of metadata and status, such as spec.replicas`;
}

function problemOfImmutable({ onImmutable, ...rest }: KubernetesDependent): string | undefined {
  const { mode, resource, deletion, operations = {} } = rest;
  if (onImmutable === undefined || onImmutable === "fail") return undefined;
  if (onImmutable !== "recreate")
    return `has ${JSON.stringify(onImmutable)} for onImmutable; it must be "fail" or "recreate"`;
  if (ownsData(resource))
    return `sets onImmutable: recreate, and the deletion of a ${kindNameOf(resource)} loses data; remove onImmutable`;
  const reasons: readonly (readonly [boolean, string])[] = [
    [mode === "createOnly" || mode === "once", `is ${mode}, so that it is never updated`],
    [operations.update === false, "is never updated (operations.update)"],
    [operations.create === false, "is created by another client (operations.create)"],
    [deletion === "orphan", "is orphaned, so that it is never deleted"],
    [operations.delete === false, "is never deleted (operations.delete)"],
    [operations.delete !== undefined, "has its own delete"],
  ];
  const never = reasons.find(([holds]) => holds)?.[1];
  return never && `${never}, and sets onImmutable: recreate; remove one of them`;
}

// An owner has to be in the namespace of what it owns, or in none (1.36, garbage collection).
function problemOfLink(dependent: KubernetesDependent, primary: ResourceDefinition): string | undefined {
  const { mode, resource, cluster } = dependent;
  if (mode === "readOnly" || deletionOf(dependent) !== "garbageCollected") return undefined;
  const advice = "state deletion: ordered, so that the runtime deletes it";
  if (cluster !== undefined)
    return `lives in cluster "${cluster}", where the garbage collector knows nothing of its primary; ${advice}`;
  if (resource.scope === "Cluster" && primary.scope === "Namespaced")
    return `is cluster-scoped, so that no ${kindNameOf(primary)} in a namespace can own it; ${advice}`;
  return undefined;
}

function problemOfPlace({ namespace, resource, eventSource, ...rest }: KubernetesDependent): string | undefined {
  if (namespace !== undefined && resource.scope !== "Namespaced")
    return `states the namespace "${namespace}", and ${kindNameOf(resource)} is cluster-scoped; leave the namespace out`;
  if (eventSource === undefined) return undefined;
  const settings = ["filters", "labelSelector", "fieldSelector", "cluster"] as const;
  const needless = settings.find((name) => rest[name] !== undefined);
  return needless === undefined
    ? undefined
    : `shares event source "${eventSource}" and states ${needless}, which is for that source to say`;
}
