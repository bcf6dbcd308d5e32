/** The second argument of a mapper: the primaries that the cache knows, by the indexes of the controller. */
export interface MapperContext<Index extends string = string> {
  readonly primaries: {
    /** Tells whether a primary with this key, `namespace/name`, is known. */
    has(key: string): boolean;
    /** Returns the keys of all primaries. */
    keys(): Iterable<string>;
    /** Returns the keys of the primaries for which the index gave `value`. */
    keysByIndex(index: Index, value: string): ReadonlySet<string>;
  };
}
