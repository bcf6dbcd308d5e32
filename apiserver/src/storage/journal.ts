/** A change of what has to be kept. */
export interface Change {
  /** The newest revision of the store. */
  readonly revision: number;
  /** The new version of an object; without its JSON the object is deleted. */
  readonly write?: { readonly resource: string; readonly key: string; readonly json: string | undefined };
  /** The revisions of versions that nobody needs any more. */
  readonly forgotten: readonly number[];
  /** Up to which revision the history of a resource is gone, if that has changed. */
  readonly compacted?: { readonly resource: string; readonly revision: number } | undefined;
}

/** Makes changes durable in their order: after a crash all of them are there up to one of them, and what one turn wrote is there as a whole. */
export interface Journal {
  /** Takes a change; it is durable once the promise `pending` of that time is fulfilled. */
  append(change: Change): void;
  /** Fulfilled when everything that was taken is durable, rejected if it cannot be; undefined if it is durable already. */
  readonly pending: Promise<void> | undefined;
  /** Calls `listener` with the newest revision that is durable, each time that there is one. */
  onDurable(listener: (revision: number) => void): void;
}
