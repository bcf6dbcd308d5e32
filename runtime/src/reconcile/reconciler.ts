// The interface that users implement for their primaries, the controls that its functions return, and the validation of controls.
import type { PartOf } from "../base/kubernetes-object.js";
import type { WorkflowResult } from "../workflow/run.js";
import type { DependentArguments } from "../workflow/workflow-definition.js";

/** The names of the dependents in `secondary`. The resources of event sources are arrays, which dependents never are. */
type DependentNames<Secondary> = {
  [Name in keyof Secondary & string]-?: NonNullable<Secondary[Name]> extends readonly unknown[] ? never : Name;
}[keyof Secondary & string];

/** Arguments of `reconcile` and `cleanup`, which run after the workflow. `Details` has the types of condition details, by dependent and condition. */
export interface ReconcileArguments<Primary, Secondary, Details = Record<never, never>> extends DependentArguments<
  Primary,
  Secondary
> {
  /** The result of the workflow in this reconcile. */
  readonly workflow: WorkflowResult<DependentNames<Secondary>, Details>;
}

/** Arguments of `updateErrorStatus`. */
export interface ErrorArguments<Primary, Secondary, Details = Record<never, never>> extends DependentArguments<
  Primary,
  Secondary
> {
  /** The error that `initContext`, `reconcile`, or a write threw; a WorkflowError if dependents failed. */
  readonly error: unknown;
  /** The result of the workflow in this reconcile; absent if it did not run. */
  readonly workflow?: WorkflowResult<DependentNames<Secondary>, Details>;
}

/** The fields of a primary, except the status, that a reconciler may write. */
export type PrimaryPatch<Primary> = {
  readonly [Field in Exclude<keyof Primary, "apiVersion" | "kind" | "status">]?: PartOf<Primary[Field]> | undefined;
};

/** When to reconcile next. */
export interface RescheduleOptions {
  /** The time until the next reconcile in milliseconds, 0 for immediately. An event that arrives earlier replaces it. */
  readonly rescheduleAfterMs?: number;
}

/** The result of `reconcile`. Create it with `noUpdate`, `updateStatus`, `patchResource`, or `patchResourceAndStatus`. */
export interface UpdateControl<Status, Input = never> extends RescheduleOptions {
  /** The resource to write; absent to leave it unchanged. */
  readonly resource?: Input;
  /** The status to write after the resource; absent to leave it unchanged. */
  readonly status?: Status;
  readonly withoutRetry?: never;
  readonly removeFinalizer?: never;
}

/** The result of `updateErrorStatus`. Create it with `noUpdate`, `updateStatus`, or `withoutRetry`. */
export interface ErrorControl<Status> extends RescheduleOptions {
  readonly status?: Status;
  /** Treats the reconcile as successful. `rescheduleAfterMs` does so, too. */
  readonly withoutRetry?: boolean;
  readonly resource?: never;
  readonly removeFinalizer?: never;
}

/** The result of `cleanup`. A reschedule requires that the finalizer is kept, because a deleted primary is not reconciled again. */
export type DeleteControl =
  | { readonly removeFinalizer: true; readonly rescheduleAfterMs?: never }
  | ({ readonly removeFinalizer: false } & RescheduleOptions);

type Eventually<Result> = Result | void | Promise<Result | void>;

/** Your reconcile logic for one kind of primary. It is level-triggered: functions get the current state, never an event. */
export interface Reconciler<Primary, Secondary, Status, Input = PrimaryPatch<Primary>, Details = Record<never, never>> {
  /**
   * Runs after the workflow, for every change of the primary or its secondaries. Must be idempotent: the runtime may call it at any time and any
   * number of times, but never concurrently for one primary. Errors are retried.
   */
  reconcile(args: ReconcileArguments<Primary, Secondary, Details>): Eventually<UpdateControl<Status, Input>>;
  /**
   * Runs when the primary is being deleted, after the cleanup of the workflow. If it is implemented, every primary gets a finalizer, which is removed
   * when it returns nothing.
   */
  cleanup?(args: ReconcileArguments<Primary, Secondary, Details>): Eventually<DeleteControl>;
  /**
   * Runs after every failed reconcile, including the first, whether or not it is retried; not after a failed cleanup. The reconcile is retried unless
   * the control prevents it. If a control is returned, the error is not logged as a warning while retries are left.
   */
  updateErrorStatus?(args: ErrorArguments<Primary, Secondary, Details>): Eventually<ErrorControl<Status>>;
  /** Runs before the workflow in every reconcile and cleanup, to set `context.attributes` for the other functions. */
  initContext?(args: DependentArguments<Primary, Secondary>): void | Promise<void>;
}

/** Writes nothing. The options may request another reconcile. */
export function noUpdate(options: RescheduleOptions = {}): UpdateControl<never> {
  return controlOf("noUpdate", {}, options);
}

/** Requests a write of the status. Nothing is sent if the primary already has this status. */
export function updateStatus<Given extends object, Status = Given>(
  status: ExactStatus<Given, NoInfer<Status>>,
  options: RescheduleOptions = {},
): UpdateControl<StatusOf<Given, Status>> {
  return controlOf("updateStatus", { status: status as StatusOf<Given, Status> }, options);
}

/**
 * Requests a write of the resource.
 *
 * With server-side apply (the default), `resource` contains exactly the fields that the controller manages: fields that it applied earlier and that
 * are missing now are removed. Without it, `resource` is the complete desired primary.
 */
export function patchResource<Input extends object>(
  resource: Input,
  options: RescheduleOptions = {},
): UpdateControl<never, Input> {
  return controlOf("patchResource", { resource }, options);
}

/** Requests a write of the resource, as `patchResource` does, and then of the status. */
export function patchResourceAndStatus<Input extends object, Given extends object, Status = Given>(
  resource: Input,
  status: ExactStatus<Given, NoInfer<Status>>,
  options: RescheduleOptions = {},
): UpdateControl<StatusOf<Given, Status>, Input> {
  return controlOf("patchResourceAndStatus", { resource, status: status as StatusOf<Given, Status> }, options);
}

/** Keeps the finalizer, so that the primary is not deleted yet and `cleanup` runs again. */
export function keepFinalizer(options: RescheduleOptions = {}): DeleteControl {
  return controlOf("keepFinalizer", { removeFinalizer: false as const }, options);
}

/** Treats a failed reconcile as successful, so that it is not retried. Use it for errors that only a change can fix. */
export function withoutRetry<Status = never>(
  control: ErrorControl<NonNullable<Status>> = {},
): ErrorControl<NonNullable<Status>> {
  return Object.freeze({ ...control, withoutRetry: true });
}

function controlOf<Control extends object>(
  name: string,
  parts: Control,
  { rescheduleAfterMs }: RescheduleOptions,
): Readonly<Control & RescheduleOptions> {
  for (const [part, value] of Object.entries(parts))
    if (value === null || value === undefined)
      throw new TypeError(`${name}() needs a ${part}, and got ${String(value)}`);
  if (rescheduleAfterMs === undefined) return Object.freeze(parts);
  checkDelay(name, rescheduleAfterMs);
  return Object.freeze({ ...parts, rescheduleAfterMs });
}

function checkDelay(name: string, delayMs: number): void {
  if (typeof delayMs === "number" && delayMs >= 0 && Number.isFinite(delayMs)) return;
  throw new RangeError(`${name}() needs a rescheduleAfterMs of 0 or more, and got ${String(delayMs)}`);
}

const PARTS_OF = {
  reconcile: ["resource", "status", "rescheduleAfterMs"],
  cleanup: ["removeFinalizer", "rescheduleAfterMs"],
  updateErrorStatus: ["status", "rescheduleAfterMs", "withoutRetry"],
} as const;

/** Validates the control that a function of a reconciler returned, possibly without type checking; undefined if it returned nothing. */
export function checkControl<Control extends object>(
  name: keyof typeof PARTS_OF,
  returned: unknown,
): Control | undefined {
  if (returned === undefined) return undefined;
  if (!isPlainObject(returned))
    throw new TypeError(`${name}() returned ${describeReturned(returned)} instead of a control or nothing`);
  const control = returned as { removeFinalizer?: boolean; rescheduleAfterMs?: number };
  const unknown = Object.keys(control).find((part) => !(PARTS_OF[name] as readonly string[]).includes(part));
  if (unknown !== undefined)
    throw new TypeError(`${name}() returned a control with "${unknown}"; it may have ${PARTS_OF[name].join(", ")}`);
  for (const part of ["resource", "status"] as const) {
    const value = (returned as { readonly [part: string]: unknown })[part];
    if (value !== undefined && !isObject(value))
      throw new TypeError(
        `${name}() returned a control whose ${part} is ${describeReturned(value)} instead of an object`,
      );
  }
  if (control.rescheduleAfterMs === undefined) return returned as Control;
  checkDelay(name, control.rescheduleAfterMs);
  if (name === "cleanup" && control.removeFinalizer !== false)
    throw new TypeError(
      "cleanup() returned rescheduleAfterMs and removes the finalizer; a primary without its finalizer is not reconciled again. " +
        "Return keepFinalizer({ rescheduleAfterMs }), or no rescheduleAfterMs",
    );
  return returned as Control;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// A value without enumerable properties would be mistaken for an empty control.
function isPlainObject(value: unknown): value is object {
  if (!isObject(value)) return false;
  return !(value instanceof Map || value instanceof Set || value instanceof Date || value instanceof Error);
}

function describeReturned(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return isObject(value) ? `an instance of ${value.constructor.name}` : `a ${typeof value}`;
}

/** Replaces a field that the status does not have. The compiler prints its text. */
interface NoSuchField<Name, Known> {
  readonly "the status has no such field": Name;
  /** Fields with a similar name, or all fields. */
  readonly "it has": Known;
}

type Misspelled<Name, Known> = [DidYouMean<Name, Known>] extends [never]
  ? NoSuchField<Name, Known>
  : NoSuchField<Name, DidYouMean<Name, Known>>;

type DidYouMean<Name, Known> = Known extends string
  ? IsSlip<Lowercase<Name & string>, Lowercase<Known>> extends true
    ? `did you mean '${Known}'?`
    : never
  : never;

/** Whether two words are equal or differ by one typo: a missing, additional, or wrong letter, or two swapped letters. */
type IsSlip<Word, Meant> = Word extends Meant
  ? true
  : Word extends `${infer First}${infer Rest}`
    ? Meant extends `${infer MeantFirst}${infer MeantRest}`
      ? First extends MeantFirst
        ? IsSlip<Rest, MeantRest>
        : Word extends MeantRest
          ? true
          : Rest extends Meant | MeantRest
            ? true
            : [Rest, MeantRest] extends [`${MeantFirst}${infer After}`, `${First}${infer MeantAfter}`]
              ? After extends MeantAfter
                ? true
                : false
              : false
      : Rest extends ""
        ? true
        : false
    : Meant extends `${infer _}${infer Rest}`
      ? Rest extends ""
        ? true
        : false
      : false;

/**
 * The type `Wanted` without additional fields at any depth.
 *
 * If nothing determines `Wanted` (`undefined` without exactOptionalPropertyTypes), it is `Given`, which the compiler infers.
 */
type ExactStatus<Given, Wanted> = [Wanted] extends [undefined] ? Given : Wanted & Exact<Given, Wanted>;

/** The status type of a control. */
type StatusOf<Given, Wanted> = [Wanted] extends [undefined] ? Given : Wanted;

type Exact<Given, Wanted> = Given extends readonly (infer Item)[]
  ? readonly Exact<Item, ItemOf<Wanted>>[]
  : [FieldOf<Wanted>] extends [never]
    ? unknown
    : Given extends object
      ? {
          readonly [Field in keyof Given]: Field extends FieldOf<Wanted>
            ? Exact<Given[Field], ValueOf<Wanted, Field>>
            : Misspelled<Field, FieldOf<Wanted>>;
        }
      : unknown;

// Members of a union may have different fields.
type FieldOf<Wanted> = Wanted extends readonly unknown[] ? never : Wanted extends object ? keyof Wanted : never;
type ValueOf<Wanted, Field> = Wanted extends object ? (Field extends keyof Wanted ? Wanted[Field] : never) : never;
type ItemOf<Wanted> = Wanted extends readonly (infer Item)[] ? Item : never;
