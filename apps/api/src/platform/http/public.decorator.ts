import { SetMetadata } from '@nestjs/common';

/** Route metadata read by ApiKeyGuard and by the OpenAPI document: a missing key is fine (a wrong one still is 401). */
export const PUBLIC_ROUTE = 'palestra:public';
/** `signed`: the request carries its permission in its address. Such requests are not counted as those of a stranger. */
export const Public = (kind: 'open' | 'signed' = 'open') => SetMetadata(PUBLIC_ROUTE, kind);
