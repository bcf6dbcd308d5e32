// `mode: once`: creates an object once per primary, such as a Job. The run is recorded, because the object may no longer exist when the next
// reconcile looks for it: with ttlSecondsAfterFinished, a Job is deleted as soon as it has finished.
import { type KubernetesObject, type StatusCondition, describeObject, keyOf } from "../base/kubernetes-object.js";
import { userCalls } from "../base/user-calls.js";
import type { DependentRun, EndedObject, Wanted, WriteOutcome } from "../workflow/dependent-reconciler.js";
import type { KubernetesDependent } from "../workflow/workflow-definition.js";
import type { Kept, RememberedState } from "./external-state.js";
import type { LiveObjects } from "./live-objects.js";

const MOST_DETAIL = 500;

/** The recorded run of the last object. */
interface OnceRun {
  /** The UID of the object. */
  readonly id: string;
  /** The value of `again` for which the object was created, as JSON. */
  readonly again: string;
  /** Absent until the object is ready or the Job has failed. */
  readonly result?: "ready" | "failed";
  readonly detail?: string;
}

interface OnceFacts {
  readonly isLive: boolean;
  readonly run: OnceRun | undefined;
  /** The current value of `again`. */
  readonly again: string;
  /** Whether a run without a valid proof is recorded. */
  readonly isUnproven: boolean;
}

type OnceStep = "create" | "recreate" | "unchanged" | "ended" | "awaitEnd" | "reject";

/** Create the object, delete it to create it again, or skip the write with this outcome. */
type OnceDecision = { readonly kind: "create" } | { readonly kind: "recreate" } | WriteOutcome;

function nextStep({ isLive, run, again, isUnproven }: OnceFacts): OnceStep {
  if (!isLive && isUnproven) return "reject";
  if (run?.again === again) return isLive ? "unchanged" : "ended";
  if (!isLive) return "create";
  return run?.result === undefined ? "awaitEnd" : "recreate";
}

interface OnceRunsOptions {
  readonly definition: KubernetesDependent;
  readonly memory: RememberedState;
  readonly objects: LiveObjects;
}

/** Records the runs of one dependent, for any primary. */
export class OnceRuns {
  readonly #options: OnceRunsOptions;

  constructor(options: OnceRunsOptions) {
    this.#options = options;
  }

  /** Records the run of an existing object. Returns what the write has to do: create the object, recreate it, or leave it unchanged. */
  async next(run: DependentRun, wanted: Wanted, live: KubernetesObject | undefined): Promise<OnceDecision> {
    const { definition, memory } = this.#options;
    const { primary, context } = run;
    const key = wanted.item ?? "";
    if (live === undefined) await memory.lookUp(primary, key, { signal: context.signal });
    let last = this.#lastOf(primary, key);
    const unproven = last === undefined ? memory.unprovenOf(primary, key) : undefined;
    const again = await againOf(definition, primary);
    if (live !== undefined) {
      const { uid = "" } = live.metadata;
      // The operator may have been stopped after creating the object and before recording it.
      if (last?.id !== uid) last = { id: uid, again };
      this.#claim(run, wanted, live);
      await this.#keep(primary, key, last);
    } else if (last !== undefined) last = await this.#findEnd(run, key, last);
    const step = nextStep({ isLive: live !== undefined, run: last, again, isUnproven: unproven !== undefined });
    switch (step) {
      case "reject":
        throw unprovenRun(definition.name, unproven!);
      case "ended":
        await this.#keep(primary, key, last!);
        return endOf(last!);
      case "awaitEnd":
        return {
          kind: "blocked",
          because: `it is created again when ${describeObject(live!, live!.metadata)} has ended`,
          untilEnd: true,
        };
      default:
        return { kind: step };
    }
  }

  /**
   * Returns what the write has to do while the object is being deleted: an object that has finished counts as deleted; otherwise, wait for the
   * deletion.
   */
  async nextOfTerminating(
    { primary }: DependentRun,
    { item: key = "" }: Wanted,
    live: KubernetesObject,
  ): Promise<WriteOutcome> {
    const last = this.#lastOf(primary, key);
    if (last === undefined || last.id !== live.metadata.uid) return { kind: "terminating" };
    const ended = await this.#recordEnd(primary, key, last, live);
    const isOver = ended.result !== undefined && ended.again === (await againOf(this.#options.definition, primary));
    return isOver ? endOf(ended) : { kind: "terminating" };
  }

  /** Records the result of an object, once. Returns whether it has a result. */
  async remember(
    { primary }: DependentRun,
    { item: key = "" }: Wanted,
    { object, isReady }: { readonly object: KubernetesObject; readonly isReady: boolean },
  ): Promise<boolean> {
    const { definition, memory } = this.#options;
    const last = this.#lastOf(primary, key);
    const { uid = "" } = object.metadata;
    const isNew = last?.id !== uid;
    const result = resultOf(object, isReady);
    if (!isNew && (result === undefined || last?.result !== undefined)) return last?.result !== undefined;
    const again = isNew ? await againOf(definition, primary) : last!.again;
    const begun: OnceRun = { id: uid, again, ...result };
    await memory.set(primary, key, begun);
    return result !== undefined;
  }

  #lastOf(primary: KubernetesObject, key: string): OnceRun | undefined {
    return this.#options.memory.read(primary).get(key) as OnceRun | undefined;
  }

  // Without a claim, an object with a name from an earlier version would be pruned.
  #claim({ reconcile }: DependentRun, { id, item }: Wanted, { metadata }: KubernetesObject): void {
    const { definition, objects } = this.#options;
    const claim = { dependent: definition.name, item };
    if (keyOf(metadata) !== id) reconcile.notes.claim(claim, objects.place, keyOf(metadata));
  }

  /** Adds the result to the run of a deleted object, according to its last state. */
  async #findEnd(run: DependentRun, key: string, last: OnceRun): Promise<OnceRun> {
    const gone = this.#options.objects.lastSeen(run).find(({ metadata }) => metadata.uid === last.id);
    return gone === undefined ? last : this.#recordEnd(run.primary, key, last, gone);
  }

  async #recordEnd(primary: KubernetesObject, key: string, last: OnceRun, object: KubernetesObject): Promise<OnceRun> {
    if (last.result !== undefined) return last;
    const ended = { ...last, ...resultOf(object, false) };
    if (ended.result !== undefined) await this.#options.memory.set(primary, key, ended);
    return ended;
  }

  // Writes only if another client has deleted the record, or an earlier version stored it elsewhere.
  async #keep(primary: KubernetesObject, key: string, run: OnceRun): Promise<void> {
    const { memory } = this.#options;
    if (!memory.isKept(primary, key, run.id)) await memory.set(primary, key, run);
  }
}

/** Returns the value of `again` as JSON. The object is recreated when it changes. */
async function againOf({ again, name }: KubernetesDependent, primary: KubernetesObject): Promise<string> {
  if (again === undefined) return "";
  const call = { what: `again of dependent "${name}"`, primary: keyOf(primary.metadata) };
  const value: unknown = await userCalls.track(call, () => again({ primary } as never));
  return value === undefined ? "" : JSON.stringify(value);
}

/** Returns how an object has finished, or undefined if it may still become ready. A Job can finish while it is being deleted. */
function resultOf(live: KubernetesObject, isReady: boolean): Pick<OnceRun, "result" | "detail"> | undefined {
  if (isReady) return { result: "ready" };
  if (live.kind !== "Job") return undefined;
  const { conditions = [] } = (live as Conditioned).status ?? {};
  const find = (wanted: string) => conditions.find(({ type, status }) => type === wanted && status === "True");
  if (find("Complete") !== undefined) return { result: "ready" };
  const failure = find("Failed");
  if (failure === undefined) return undefined;
  const cause = failure.message || failure.reason;
  const detail = `Job ${keyOf(live.metadata)} failed${cause ? `: ${cause}` : ""}`;
  return { result: "failed", detail: detail.slice(0, MOST_DETAIL) };
}

type Conditioned = KubernetesObject & { readonly status?: { readonly conditions?: readonly StatusCondition[] } };

function endOf({ result, detail }: OnceRun): EndedObject {
  if (result === "ready") return { kind: "ended", isReady: true };
  return {
    kind: "ended",
    isReady: false,
    detail: detail ?? "the object was deleted before it was seen to be ready, and is not created again",
  };
}

export function unprovenRun(name: string, { place, proofPlace }: Kept): Error {
  return new Error(
    `whether the object of dependent "${name}" was created before is not known: ${place} was not written by this operator, as its proof (${proofPlace}) ` +
      "is missing or wrong; remove it, and the object is created",
  );
}
