import type { ControllerModel, InformerModel, ResourceModel } from "#generator/model/project-model.js";
import { wideSourceNotes } from "#generator/check/watches.js";
import { assert, suite } from "../../../../support/suite.js";

const pod = { kind: "Pod", isCustom: false } as ResourceModel;
const notesFor = (source: Partial<InformerModel>) => {
  const eventSources = [{ kind: "informer", name: "pods", resource: pod, cache: { kind: "full" }, ...source }];
  return wideSourceNotes({ controllers: [{ name: "page", eventSources } as unknown as ControllerModel] });
};

suite("an event source that keeps all objects of a built-in kind", (test) => {
  test("is noted with what narrows it", () => {
    assert.equal(notesFor({}), [
      'controller "page" keeps every Pod that event source "pods" may see, whole: set labelSelector, fieldSelector or cache; gen-operator suggest caches finds out what your code reads',
    ]);
  });

  for (const [what, narrowed] of Object.entries<Partial<InformerModel>>({
    "a label selector": { labelSelector: "app" },
    "a field selector": { fieldSelector: "spec.nodeName=a" },
    "a bound": { maxCachedObjects: 100 },
    "metadata alone": { cache: { kind: "metadata" } },
    "some fields": { cache: { kind: "paths", paths: ["status.phase"] } },
    "a custom resource": { resource: { kind: "Page", isCustom: true } as ResourceModel },
  }))
    test(`is not noted with ${what}`, () => assert.equal(notesFor(narrowed), []));
});
