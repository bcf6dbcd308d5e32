import type { DependentArguments } from "./workflow-definition.js";

/** What a deletion may state. */
export interface DeletionOptions {
  /** What becomes of the objects that the object owns. Default: what the API server does for the kind, mostly `Background`. */
  readonly propagationPolicy?: "Background" | "Foreground" | "Orphan";
}

/** What the own `create` of a dependent is called with. */
export interface CreateArguments<Primary, Secondary, Input> extends DependentArguments<Primary, Secondary> {
  readonly desired: Input;
  /** Creates the object as the runtime does. A dependent that is not created is waited for. */
  next(): Promise<void>;
}

/** What the own `update` of a dependent is called with. */
export interface UpdateArguments<Primary, Secondary, Input, Live> extends DependentArguments<Primary, Secondary> {
  readonly desired: Input;
  readonly live: Live;
  /** Makes the object as desired if it is not, as the runtime does. */
  next(): Promise<void>;
}

/** What the own `delete` of a dependent is called with. */
export interface DeleteArguments<Primary, Secondary, Live> extends DependentArguments<Primary, Secondary> {
  readonly live: Live;
  /** Deletes the object as the runtime does, unless it was created anew meanwhile. An object that is not deleted is left. */
  next(options?: DeletionOptions): Promise<void>;
}

type Done = void | Promise<void>;

/**
 * What stands in the place of what the runtime does with the object of a dependent, or with each item. `false`: it is never done.
 *
 * The functions may be called again for the same object: they must be idempotent.
 */
export interface Operations<Primary = never, Secondary = never, Input = never, Live = never> {
  /** Called when there is no object. `false`: somebody else creates it, and it is waited for. */
  readonly create?: false | ((args: CreateArguments<Primary, Secondary, Input>) => Done);
  /** Called when there is an object; with a `matcher` only if it differs. `false`: it is left as it is. */
  readonly update?: false | ((args: UpdateArguments<Primary, Secondary, Input, Live>) => Done);
  /** Called when the object must not exist, unless the garbage collector deletes it. `false`: it is left. */
  readonly delete?: false | ((args: DeleteArguments<Primary, Secondary, Live>) => Done);
}
