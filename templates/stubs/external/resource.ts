/** A resource of "__name__", as its service reports it. */
export interface Resource {
  readonly id: string;
}
