import { CAPABILITIES } from "../model/dependent-model.js";
import type { OperationSpec } from "../input/workflow-spec.js";
import {
  isKubernetes,
  referenceText,
  type DependentModel,
  type ExternalDependentModel,
  type FiltersModel,
  type KubernetesDependentModel,
} from "../model/project-model.js";
import type { AddChange } from "./change.js";
import { compareFacts, kindOf } from "./compare-facts.js";

/** Compares a dependent with what it is now: what that does to its objects. */
export function compareDependent(before: DependentModel, after: DependentModel, add: AddChange): void {
  const { name } = after;
  compareEdges(before, after, add);
  compareConditions(before, after, add);
  if (!isKubernetes(before) && !isKubernetes(after)) return compareExternal(before, after, add);
  if (!isKubernetes(before) || !isKubernetes(after)) {
    const [former, now] = [before, after].map((each) => (isKubernetes(each) ? kindOf(each.resource) : "external"));
    add("breaking", name, `${former} → ${now}; what was made stays, and nobody has it in hand`);
    return;
  }
  const [kind, kindAfter] = [before.resource, after.resource];
  if (kind.group !== kindAfter.group || kind.kind !== kindAfter.kind)
    add(
      "breaking",
      name,
      `${kindOf(kind)} → ${kindOf(kindAfter)}; objects of the new kind are created, and removed: has to say what becomes of the others`,
    );
  else if (kind.version !== kindAfter.version)
    add("compatible", name, `${kind.version} → ${kindAfter.version} of ${kind.kind}; the objects stay`);
  for (const option of ["namespace", "cluster"] as const) {
    const [former, now] = [before, after].map((each) => each[option] ?? "of the primary");
    const isSeen = option === "namespace" && after.namespace === undefined;
    const fate = `new objects are created there, and ${isSeen ? "the old ones are pruned" : OLD_ONES}`;
    if (former !== now)
      add(
        "breaking",
        name,
        `${option} ${former} → ${now}; ${before.mode === "readOnly" ? "objects are read there" : fate}`,
      );
  }
  if (before.fieldManager !== after.fieldManager)
    add(
      "breaking",
      name,
      `fieldManager ${before.fieldManager ?? "of the controller"} → ${after.fieldManager ?? "of the controller"}; fields that the old one has applied stay`,
    );
  if (before.deletion !== after.deletion) add("breaking", name, `deletion ${before.deletion} → ${after.deletion}`);
  const [ref, refAfter] = [before.ref, after.ref].map((each) => (each === undefined ? "none" : referenceText(each)));
  if (ref !== refAfter) add("compatible", name, `ref ${ref} → ${refAfter}`);
  if (before.mode !== after.mode) {
    const stops = after.mode !== undefined && before.mode !== "readOnly";
    add(stops ? "breaking" : "compatible", name, `mode ${before.mode ?? "managed"} → ${after.mode ?? "managed"}`);
  }
  if ((before.bulk === undefined) !== (after.bulk === undefined))
    add(
      "breaking",
      name,
      after.bulk === undefined
        ? "no longer bulk; items are pruned"
        : "bulk now; the single object is pruned unless an item has its name",
    );
  compareWriting(before, after, add);
}

// What decides which objects are seen, and how they are written.
function compareWriting(before: KubernetesDependentModel, after: KubernetesDependentModel, add: AddChange): void {
  const { name } = after;
  for (const option of ["labelSelector", "fieldSelector"] as const) {
    const [former, now] = [before, after].map((each) => each[option] ?? "none");
    const isWider = after[option] === undefined;
    const fate = before.mode === "readOnly" ? "" : `, and are made anew; ${OLD_ONES}`;
    const seen = isWider ? "more objects are seen" : `objects that it does not select are not seen any more${fate}`;
    if (former !== now) add(isWider ? "compatible" : "breaking", name, `${option} ${former} → ${now}; ${seen}`);
  }
  if (before.serverSideApply !== after.serverSideApply)
    add(
      "breaking",
      name,
      after.serverSideApply === false
        ? "written by PUT now; fields of others are overwritten"
        : "written by server-side apply now; fields that a PUT has set stay with its manager",
    );
  const isConditional = [before, after].some(({ conditions }) => conditions.existing !== undefined);
  if (before.existing !== after.existing && !isConditional)
    add(
      "compatible",
      name,
      after.existing === "adopt" ? "objects of the name are taken over" : "objects of others are refused",
    );
  if (before.heldForCleanup !== after.heldForCleanup)
    add(
      "compatible",
      name,
      after.heldForCleanup === true
        ? "held for cleanup: its objects get a finalizer"
        : "no longer held for cleanup; its objects lose the finalizer",
    );
  if (before.onImmutable !== after.onImmutable)
    add(
      after.onImmutable === undefined ? "breaking" : "compatible",
      name,
      after.onImmutable === undefined
        ? "onImmutable recreate → fail; changes of immutable fields are refused"
        : "onImmutable fail → recreate; its objects are deleted and created again when an immutable field changes",
    );
  for (const operation of CAPABILITIES) {
    const [former, now] = [before, after].map(({ operations }) => operationText(operations?.[operation]));
    if (former !== now)
      add(
        now === "never" ? "breaking" : "compatible",
        name,
        `${operation} ${former} → ${now}${now === "never" ? `; ${NEVER[operation]}` : ""}`,
      );
  }
  compareFacts(factsOf(before), factsOf(after), (field, text) => add("compatible", name, `${field} ${text}`));
}

const OLD_ONES = "removed: has to say what becomes of the old ones";

const NEVER = {
  create: "somebody else has to create its objects",
  update: "its objects stay as they are",
  delete: "objects that have to go stay",
} as const;

function operationText(operation: OperationSpec | undefined): string {
  return operation === undefined ? "by the runtime" : operation === "own" ? "by your function" : "never";
}

function factsOf(dependent: KubernetesDependentModel): object {
  const { bulk, eventSource, released, matcher, timeoutMs, retry, filters, again } = dependent;
  return {
    released: released?.join(", "),
    again: again?.expression.trim(),
    bulk: bulk?.maxConcurrency,
    eventSource,
    matcher,
    timeoutMs,
    retry,
    filters: filtersText(filters),
  };
}

function compareExternal(before: ExternalDependentModel, after: ExternalDependentModel, add: AddChange): void {
  const { name } = after;
  const states = [before, after].map(({ external }) => external.state);
  const [former, now] = states.map(stateText);
  const [formerPlace, place] = states.map(placeText);
  if (formerPlace !== place)
    add(
      "breaking",
      name,
      `ids kept in ${former} → ${now}; those that were kept are not found: copy them before, or resources are created twice`,
    );
  else if (former !== now)
    add("compatible", name, `ids kept in ${former} → ${now}; the operator moves those that were kept`);
  for (const operation of CAPABILITIES) {
    const [could, can] = [before, after].map(({ external }) => external.capabilities.includes(operation));
    if (could !== can)
      add(
        can === true ? "compatible" : "breaking",
        name,
        can === true ? `${operation} is possible now` : `${operation} is no longer possible`,
      );
  }
  if ((before.bulk === undefined) !== (after.bulk === undefined))
    add(
      "breaking",
      name,
      after.bulk === undefined ? "no longer bulk" : "bulk now; a resource is found by the key of its item",
    );
  const factsOfExternal = ({
    external: { source, onDeleteFailure, creationGraceMs },
    matcher,
    timeoutMs,
    retry,
  }: ExternalDependentModel) => ({
    source,
    onDeleteFailure,
    creationGraceMs,
    matcher,
    timeoutMs,
    retry,
  });
  compareFacts(factsOfExternal(before), factsOfExternal(after), (field, text) =>
    add("compatible", name, `${field} ${text}`),
  );
}

type State = ExternalDependentModel["external"]["state"];

function placeText(state: State): string {
  if (state === undefined) return "nothing";
  if (state.kind === "status") return `status.${state.path.join(".")}`;
  return state.kind === "resource" ? `${kindOf(state.resource)} ${state.path.join(".")}` : state.kind;
}

function stateText(state: State): string {
  const isPerItem = state !== undefined && state.kind !== "status" && state.perItem === true;
  return isPerItem ? `${placeText(state)} of each item` : placeText(state);
}

// What a dependent requires is what deletes it.
function compareEdges(before: DependentModel, after: DependentModel, add: AddChange): void {
  const edgesOf = ({ dependsOn, itemsDependOn = [] }: DependentModel) =>
    new Map<string, "required" | "optional" | "by items">([
      ...dependsOn.map((each) =>
        typeof each === "string" ? ([each, "required"] as const) : ([each.name, "optional"] as const),
      ),
      ...itemsDependOn.map((each) => [each, "by items"] as const),
    ]);
  const [former, now] = [edgesOf(before), edgesOf(after)];
  for (const [other, form] of now)
    if (former.get(other) !== form)
      add(
        "compatible",
        after.name,
        `depends on ${other} (${form})${form === "required" ? `; it goes when ${other} is not wanted` : ""}`,
      );
  for (const other of former.keys())
    if (!now.has(other)) add("compatible", after.name, `no longer depends on ${other}`);
}

function compareConditions(before: DependentModel, after: DependentModel, add: AddChange): void {
  const { name } = after;
  for (const condition of [
    "activationCondition",
    "reconcilePrecondition",
    "readyPostcondition",
    "deletePostcondition",
  ] as const)
    if (conditionText(before, condition) !== conditionText(after, condition))
      add("compatible", name, `${condition} ${conditionText(before, condition)} → ${conditionText(after, condition)}`);
}

/** Returns filters as a text. */
function filtersText(filters: FiltersModel): string | undefined {
  const parts = Object.entries(filters).map(
    ([each, filter]) => `${each}: ${filter.kind === "when" ? filter.expression.trim() : filter.name}`,
  );
  return parts.length === 0 ? undefined : parts.join(", ");
}

function conditionText({ conditions }: DependentModel, name: keyof DependentModel["conditions"]): string {
  const condition = conditions[name];
  if (condition === undefined) return "none";
  return condition.kind === "when" ? condition.expression.trim() : condition.name;
}
