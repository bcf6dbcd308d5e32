import type { ControllerModel, InformerModel, ResourceModel } from "#generator/model/project-model.js";
import { wideSourceNotes } from "#generator/check/watches.js";
import { assert, suite } from "../../../../support/suite.js";

const pod = { kind: "Pod", isCustom: false } as ResourceModel;
const notesFor = (source: Partial<InformerModel>) => {
  const eventSources = [{ kind: "informer", name: "pods", resource: pod, cache: { kind: "full" }, ...source }];
  return wideSourceNotes({ controllers: [{ name: "page", eventSources } as unknown as ControllerModel] });
};

suite("wideSourceNotes", (test) => {
  test("suggests options for an event source that caches all objects of a built-in kind", () => {
    assert.equal(notesFor({}), [
      'event source "pods" of controller "page" caches every Pod in full: set labelSelector, fieldSelector or cache; run gen-operator suggest caches to see what your code reads',
    ]);
  });

  for (const [what, narrowed] of Object.entries<Partial<InformerModel>>({
    "a label selector": { labelSelector: "app" },
    "a field selector": { fieldSelector: "spec.nodeName=a" },
    maxCachedObjects: { maxCachedObjects: 100 },
    "metadata only": { cache: { kind: "metadata" } },
    "cache paths": { cache: { kind: "paths", paths: ["status.phase"] } },
    "a custom resource": { resource: { kind: "Page", isCustom: true } as ResourceModel },
  }))
    test(`ignores an event source with ${what}`, () => assert.equal(notesFor(narrowed), []));
});
