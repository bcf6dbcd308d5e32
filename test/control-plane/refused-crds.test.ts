import { apiRequest } from "../support/api/api-request.js";
import { readRefusedCrds } from "../support/crds/refused-crds.js";
import { borrowControlPlane } from "../support/machine/borrow-control-plane.js";
import { assert, shared, suite } from "../support/suite.js";

suite("kube-apiserver", (test) => {
  const plane = shared(() => borrowControlPlane());
  for (const { name, crd, says } of readRefusedCrds())
    test(
      `rejects ${name} with 422`,
      async () => {
        const path = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
        const { status, body } = await apiRequest<{ message?: string }>(await plane(), path, { body: crd });
        assert.is(status, 422, body.message);
        assert.match(body.message ?? "", says);
      },
      { timeoutMs: 60_000 },
    );
});
