/** Deletes one; one that is gone already is deleted. */
export const __remove__: __Delete__ = () => {};
