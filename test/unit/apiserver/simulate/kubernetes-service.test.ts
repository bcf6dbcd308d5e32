import { ApiError } from "#apiserver/simulate/feed/api-client.js";
import type { Cluster } from "#apiserver/simulate/feed/cluster.js";
import { writeServerEndpoints } from "#apiserver/simulate/services/kubernetes-service.js";
import { assert, suite } from "../../../support/suite.js";

const URL = "https://10.1.2.3:6443";

function clusterWhoseCreations(answer: (kind: string) => never) {
  const attempts: string[] = [];
  const cluster: Pick<Cluster, "get" | "create"> = {
    get: () => undefined,
    async create(kind) {
      attempts.push(kind);
      return answer(kind);
    },
  };
  return { attempts, cluster };
}

suite("writeServerEndpoints", (test) => {
  test("ignores 409 if the server has created the endpoints concurrently", async () => {
    const { attempts, cluster } = clusterWhoseCreations((kind) => {
      throw new ApiError(409, `${kind} "kubernetes" already exists`);
    });
    await writeServerEndpoints(cluster, URL);
    assert.equal(attempts, ["endpoints.", "endpointslices.discovery.k8s.io"]);
  });

  test("fails if the endpoints cannot be created", async () => {
    const { cluster } = clusterWhoseCreations(() => {
      throw new ApiError(403, "not allowed");
    });
    await assert.rejects(writeServerEndpoints(cluster, URL), /not allowed/);
  });
});
