/** One of "__name__", as it is outside of Kubernetes. */
export interface Resource {
  readonly id: string;
}
