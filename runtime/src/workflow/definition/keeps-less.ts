declare const lookups: unique symbol;

/**
 * The part of `secondary` by which the types of a function know that event sources keep less of some resources than their classes say. No
 * object has the property. `Lookups` has what `secondary` and `secondaries` of the context return for these classes.
 */
export interface KeepsLess<Lookups> {
  readonly [lookups]?: Lookups;
}

/** The lookups of a context beside a `secondary`; `unknown`, which adds nothing, where event sources keep whole objects. */
export type LookupsOf<Secondary> = Secondary extends KeepsLess<infer Lookups> ? NonNullable<Lookups> : unknown;
