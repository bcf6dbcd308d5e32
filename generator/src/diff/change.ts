/** Something that differs between two states of a project. */
export interface Change {
  /** Breaking: stored objects, manifests of users or other programs may stop working, or running objects are deleted. */
  readonly effect: "breaking" | "compatible";
  /** What it is about: `webpages.example.com v1`, `controller webpage`. */
  readonly subject: string;
  /** The field or dependent; absent if it is about the subject as a whole. */
  readonly path?: string;
  readonly message: string;
}

/** Takes note of a change of a subject. */
export type AddChange = (effect: Change["effect"], path: string, message: string) => void;

/** Returns a function that collects the changes of a subject. */
export function collectInto(changes: Change[], subject: string): AddChange {
  return (effect, path, message) => void changes.push({ effect, subject, ...(path === "" ? {} : { path }), message });
}
