/** The index under which a cache finds the objects that belong to a primary, by the key of the primary. */
export const OWNER_INDEX = "owner";
