/** A resource of "__name__", as its service has it. */
export interface Resource {
  readonly id: string;
}
