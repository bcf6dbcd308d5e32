// The interface that users implement for their primaries, the controls that its functions return, and the check of those.
import type { PartOf } from "../base/kubernetes-object.js";
import type { WorkflowResult } from "../workflow/run.js";
import type { DependentArguments } from "../workflow/workflow-definition.js";

/** The names of the dependents among what a function of the user sees; what event sources know are lists. */
type DependentNames<Secondary> = {
  [Name in keyof Secondary & string]-?: NonNullable<Secondary[Name]> extends readonly unknown[] ? never : Name;
}[keyof Secondary & string];

/** What a reconciler is called with, after the workflow ran. `Details` are the types of what conditions find, by dependent and condition. */
export interface ReconcileArguments<Primary, Secondary, Details = Record<never, never>> extends DependentArguments<
  Primary,
  Secondary
> {
  /** What the workflow did in this reconcile. */
  readonly workflow: WorkflowResult<DependentNames<Secondary>, Details>;
}

/** What `updateErrorStatus` is called with. */
export interface ErrorArguments<Primary, Secondary, Details = Record<never, never>> extends DependentArguments<
  Primary,
  Secondary
> {
  /** What was thrown: by `initContext`, `reconcile` or a write; a WorkflowError if dependents failed. */
  readonly error: unknown;
  /** What the workflow did in this reconcile; absent if it was not reached. */
  readonly workflow?: WorkflowResult<DependentNames<Secondary>, Details>;
}

/** What a reconciler may write of its primary besides the status. */
export type PrimaryPatch<Primary> = {
  readonly [Field in Exclude<keyof Primary, "apiVersion" | "kind" | "status">]?: PartOf<Primary[Field]> | undefined;
};

/** When the next reconcile comes. */
export interface RescheduleOptions {
  /** Reconciles again after this time, 0 for at once; an event that comes first takes its place. */
  readonly rescheduleAfterMs?: number;
}

/** What a reconciler wants done after it returns; made by `noUpdate`, `updateStatus`, `patchResource` or `patchResourceAndStatus`. */
export interface UpdateControl<Status, Input = never> extends RescheduleOptions {
  /** What to write of the resource; absent to leave it as it is. */
  readonly resource?: Input;
  /** The status to write, after the resource; absent to leave it as it is. */
  readonly status?: Status;
  readonly withoutRetry?: never;
  readonly removeFinalizer?: never;
}

/** What is done about an error besides retrying; made by `noUpdate`, `updateStatus` or `withoutRetry`. */
export interface ErrorControl<Status> extends RescheduleOptions {
  readonly status?: Status;
  /** Takes the reconcile for a success, as a reschedule does, too. */
  readonly withoutRetry?: boolean;
  readonly resource?: never;
  readonly removeFinalizer?: never;
}

/** What a cleanup wants done after it returns: only a primary that stays can be reconciled again. */
export type DeleteControl =
  | { readonly removeFinalizer: true; readonly rescheduleAfterMs?: never }
  | ({ readonly removeFinalizer: false } & RescheduleOptions);

type Eventually<Result> = Result | void | Promise<Result | void>;

/** The part of an operator that the user writes for each primary; called with state, never with an event. */
export interface Reconciler<Primary, Secondary, Status, Input = PrimaryPatch<Primary>, Details = Record<never, never>> {
  /**
   * Runs after the workflow, for every change. It must be idempotent: it may run at any time and as often as the runtime likes,
   * but never twice at once for one primary. What it throws is retried.
   */
  reconcile(args: ReconcileArguments<Primary, Secondary, Details>): Eventually<UpdateControl<Status, Input>>;
  /** Runs when the primary is being deleted, after the workflow's cleanup. Its presence gives each primary a finalizer, until it returns nothing. */
  cleanup?(args: ReconcileArguments<Primary, Secondary, Details>): Eventually<DeleteControl>;
  /**
   * Runs when a reconcile failed, for the first time already and whether or not it is retried; not for a cleanup. The reconcile is retried
   * unless the control says otherwise; returning a control makes the log quiet about it while retries are left.
   */
  updateErrorStatus?(args: ErrorArguments<Primary, Secondary, Details>): Eventually<ErrorControl<Status>>;
  /** Runs before the workflow of every reconcile and cleanup, to put into `context.attributes` what the others need. */
  initContext?(args: DependentArguments<Primary, Secondary>): void | Promise<void>;
}

/** Asks for nothing but, perhaps, another reconcile later. */
export function noUpdate(options: RescheduleOptions = {}): UpdateControl<never> {
  return controlOf("noUpdate", {}, options);
}

/** Asks for the status to be written; nothing is sent if the primary already has it. */
export function updateStatus<Given extends object, Status = Given>(
  status: ExactStatus<Given, NoInfer<Status>>,
  options: RescheduleOptions = {},
): UpdateControl<StatusOf<Given, Status>> {
  return controlOf("updateStatus", { status: status as StatusOf<Given, Status> }, options);
}

/**
 * Asks for the resource to be written.
 *
 * With server-side apply (the default), `resource` has the fields that the controller intends and no others: what it applied before and is
 * missing now is removed. Without it, `resource` is the whole primary as it should become.
 */
export function patchResource<Input extends object>(
  resource: Input,
  options: RescheduleOptions = {},
): UpdateControl<never, Input> {
  return controlOf("patchResource", { resource }, options);
}

/** Asks for the resource to be written as by `patchResource`, and then the status. */
export function patchResourceAndStatus<Input extends object, Given extends object, Status = Given>(
  resource: Input,
  status: ExactStatus<Given, NoInfer<Status>>,
  options: RescheduleOptions = {},
): UpdateControl<StatusOf<Given, Status>, Input> {
  return controlOf("patchResourceAndStatus", { resource, status: status as StatusOf<Given, Status> }, options);
}

/** Keeps the finalizer, so that the primary stays and cleanup runs again. */
export function keepFinalizer(options: RescheduleOptions = {}): DeleteControl {
  return controlOf("keepFinalizer", { removeFinalizer: false as const }, options);
}

/** Takes a failed reconcile for a success, so that it is not retried: for errors that only a change can mend. */
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

/** Checks and returns what a function of a reconciler returned, which may be written without types; undefined if that is nothing. */
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

// A value without enumerable members would count as a control that asks for nothing.
function isPlainObject(value: unknown): value is object {
  if (!isObject(value)) return false;
  return !(value instanceof Map || value instanceof Set || value instanceof Date || value instanceof Error);
}

function describeReturned(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return isObject(value) ? `an instance of ${value.constructor.name}` : `a ${typeof value}`;
}

/** Stands in the place of a field that the status does not have; its text is what the compiler prints. */
interface NoSuchField<Name, Known> {
  readonly "the status has no such field": Name;
  /** The fields that the name resembles, or all of them. */
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

/** Tells whether one letter of a word was left out, added, replaced, or exchanged with the next one. Equal words count, too. */
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
 * A status as `Wanted`, without fields that `Wanted` does not have, at any depth.
 *
 * Where nothing says what is wanted (`undefined` without exactOptionalPropertyTypes), it is whatever is given. The compiler infers `Given` so.
 */
type ExactStatus<Given, Wanted> = [Wanted] extends [undefined] ? Given : Wanted & Exact<Given, Wanted>;

/** The status that a control has. */
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

// A member of a union may be what is given.
type FieldOf<Wanted> = Wanted extends readonly unknown[] ? never : Wanted extends object ? keyof Wanted : never;
type ValueOf<Wanted, Field> = Wanted extends object ? (Field extends keyof Wanted ? Wanted[Field] : never) : never;
type ItemOf<Wanted> = Wanted extends readonly (infer Item)[] ? Item : never;
