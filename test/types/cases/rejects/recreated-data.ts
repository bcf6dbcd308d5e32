import { Job } from "@gen-operator/kinds/batch/v1";
import { Namespace, PersistentVolumeClaim } from "@gen-operator/kinds/core/v1";
import { defineWorkflow } from "@gen-operator/runtime/codegen";
import { WebPage } from "../../../../fixtures/samples/webpage/src/generated/index.js";

export const workflow = defineWorkflow(WebPage)
  .dependent("job", { resource: Job, desired: () => ({ metadata: { name: "x" } }) as never, onImmutable: "recreate" })
  .dependent("fails", { resource: PersistentVolumeClaim, desired: () => ({}) as never, onImmutable: "fail" })
  .dependent("claim", { resource: PersistentVolumeClaim, desired: () => ({}) as never, onImmutable: "recreate" })
  .dependent("namespace", { resource: Namespace, desired: () => ({}) as never, onImmutable: "recreate" })
  .dependent("typo", { resource: Job, desired: () => ({}) as never, onImmutable: "replace" });
