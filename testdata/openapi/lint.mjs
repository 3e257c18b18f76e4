// Lints an OpenAPI document with the strictest rules of Redocly, and prints each problem on a line. Nothing is fetched.
import { createConfig, lint } from "@redocly/openapi-core";

const config = await createConfig({ extends: ["recommended-strict"] });
for (const problem of await lint({ ref: process.argv[2], config })) {
  console.log(problem.severity, problem.ruleId, problem.location[0].pointer, problem.message);
}
