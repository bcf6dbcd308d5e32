import type { ObjectKey } from "../../base/kubernetes-object.js";

/** Where the user's code hands over external resources, such as those that a webhook brings; what comes while nothing takes them is lost. */
export interface Inbound<Resource> {
  /** Takes one resource of a primary. */
  put(primary: ObjectKey, resource: Resource): void;
  /** Takes all resources of a primary; others that it had are gone. */
  replace(primary: ObjectKey, resources: readonly Resource[]): void;
  /** Takes that a resource of this id is gone. */
  delete(primary: ObjectKey, id: string): void;
}

/** The way from the user's code to the event sources that take what it hands over: those that run, of which there usually is one. */
export interface InboundChannel<Resource> extends Inbound<Resource> {
  /** Hands everything on to `target`, too, until the function that is returned is called. */
  connect(target: Inbound<Resource>): () => void;
}

/** Creates a channel that is connected to nothing yet. */
export function createInbound<Resource>(): InboundChannel<Resource> {
  const targets = new Set<Inbound<Resource>>();
  return Object.freeze<InboundChannel<Resource>>({
    put: (...args) => targets.forEach((target) => target.put(...args)),
    replace: (...args) => targets.forEach((target) => target.replace(...args)),
    delete: (...args) => targets.forEach((target) => target.delete(...args)),
    connect(target) {
      targets.add(target);
      return () => void targets.delete(target);
    },
  });
}
