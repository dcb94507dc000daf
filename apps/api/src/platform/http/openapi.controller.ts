import { Controller, Get, Inject, Injectable } from '@nestjs/common';
import { Public } from './public.decorator.ts';

/** Holds the document, which is built when the whole application exists. */
@Injectable()
export class OpenApiDocument {
  json: object = {};
}

@Controller('openapi.json')
@Public()
export class OpenApiController {
  constructor(@Inject(OpenApiDocument) private readonly document: OpenApiDocument) {}

  @Get()
  get() {
    return this.document.json;
  }
}
