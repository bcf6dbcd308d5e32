import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startApiServer } from "#apiserver/index.js";
import { readTokenFile } from "#apiserver/identity/authenticator.js";
import { apiRequest, type ApiObject, type Connection } from "../../support/api/api-request.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const WHO_AM_I = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";
const SELF = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
type Reviewed = ApiObject & { code?: number; status?: { userInfo?: { username: string } } };

async function userOf(connection: Connection, shown?: { certificate: string; key: string }): Promise<unknown> {
  const options = { body: SELF, ...(shown === undefined ? {} : { shown }) };
  const { body } = await apiRequest<Reviewed>(connection, WHO_AM_I, options);
  return body.status?.userInfo ?? body.code;
}

suite("API server user", (test) => {
  test("authenticates with the configured token, uid, and groups", async () => {
    const users = [{ name: "ann", token: "secret", uid: "7", groups: ["writers"] }];
    await using server = await startApiServer({ users });
    const ann = { username: "ann", uid: "7", groups: ["writers", "system:authenticated"] };
    assert.equal(await userOf({ ...server, token: "secret" }), ann);
    assert.is(await userOf({ ...server, token: "secrets" }), 401);
  });

  test("authenticates by certificate before token, and by token once the certificate has expired", async () => {
    await using server = await startApiServer();
    const nameOf = async (token: string) =>
      ((await userOf({ ...server, token }, jane)) as { username?: string }).username ?? "nobody";
    const jane = server.withCertificate("jane", { groups: ["readers"] });
    assert.is(await nameOf(server.token), "jane");
    assert.is(await nameOf("wrong"), "jane");
    server.faults.shiftClock(30 * 366 * 24 * 3_600_000);
    assert.is(await nameOf(server.token), "gen-operator-admin");
    assert.is(await userOf({ ...server, token: "" }, jane), 401);
  });

  test("cannot get a certificate from a server without TLS", async () => {
    await using server = await startApiServer({ tls: false });
    assert.throws(
      () => server.withCertificate("jane"),
      "client certificates require HTTPS: start the API server without tls: false",
    );
  });

  test("is read from a line of a token file, with an error that names an incomplete line", async () => {
    await using folder = await createTemporaryFolder();
    const file = join(folder.path, "tokens.csv");
    await writeFile(file, 'a,ann,,"x,""y"""\r\n\nb,bob,7\nc, cid ,8,z\n');
    assert.equal(await readTokenFile(file), [
      { token: "a", name: "ann", groups: ["x", '"y"'] },
      { token: "b", name: "bob", uid: "7", groups: [] },
      { token: "c", name: "cid", uid: "8", groups: ["z"] },
    ]);
    await writeFile(file, "a,ann,1\nb\n");
    await assert.rejects(
      readTokenFile(file),
      `${file}:2: token and user name are required; use the format token,user,uid`,
    );
  });
});
