import { type RunningServer, serve } from '@palestra/environment-kit';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sharedServer, type TestServer } from '../../support/server.ts';
import { textEnvironments } from '../../support/text-environments.ts';
import { bodyOf, demandedOf, document, furnish, type House, idsOf, routes, sessionHeaders, urlOf } from './every-route.world.ts';

/** Every route of the OpenAPI document, asked as it says: the answer is one that it describes, whole and without a member more. */
let server: TestServer;
let upstream: RunningServer;
let house: House;
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
beforeAll(async () => {
  [server, upstream] = await Promise.all([sharedServer(), serve(textEnvironments)]);
  house = await furnish(server, upstream.url);
});
afterAll(async () => {
  await server?.close();
  await upstream?.close();
});

/** A stream that does not end, JSON-RPC, and what closes the door behind us. */
const APART = /\/events$|\/mcp($|\/)|^\/v1\/(logout|organisations)/;
const asked = routes.filter(({ method, route }) => method !== 'DELETE' && !APART.test(route));

test.each(asked)('$method $route', async (route) => {
  const body = bodyOf(route);
  const about = body && 'rollout' in body && route.route !== '/v1/sessions/{sid}/rollout' ? { ...body, rollout: house.rollout } : body;
  const answer = await server.request(route.method, urlOf(route, idsOf(house, route), demandedOf(route)), {
    headers: sessionHeaders(server, house.sid),
    ...(about && { body: about }),
  });
  const described = route.responses[answer.status];
  expect(described, `${answer.status} ${JSON.stringify(answer.body)}`).toBeDefined();
  if (answer.status >= 400) return expect(described!.description.split(', ')).toContain(answer.body.code);
  const schema = described!.content?.['application/json']?.schema;
  if (schema === undefined) return;
  const validate = ajv.compile({ ...schema, components: document.components });
  validate(answer.body);
  expect(validate.errors?.map(({ instancePath, message, params }) => [instancePath, message, params]) ?? []).toEqual([]);
});
