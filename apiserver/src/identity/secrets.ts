/** The texts that a server keeps beside its objects, such as keys; a Map is enough for one that keeps nothing. */
export interface Secrets {
  get(name: string): string | undefined;
  set(name: string, text: string): unknown;
}
