/** Any of the filters of an event source, or a part of one. */
export type Filter<Arguments extends readonly unknown[]> = (...args: Arguments) => boolean;

/** Combines filters into one that lets pass what all of them let pass. */
export function allOf<Arguments extends readonly unknown[]>(
  ...filters: readonly Filter<Arguments>[]
): Filter<Arguments> {
  return (...args) => filters.every((filter) => filter(...args));
}

/** Combines filters into one that lets pass what at least one of them lets pass. */
export function anyOf<Arguments extends readonly unknown[]>(
  ...filters: readonly Filter<Arguments>[]
): Filter<Arguments> {
  return (...args) => filters.some((filter) => filter(...args));
}

/** Turns a filter into one that lets pass what it does not. */
export function not<Arguments extends readonly unknown[]>(filter: Filter<Arguments>): Filter<Arguments> {
  return (...args) => !filter(...args);
}
