# A static program on nothing: no shell, no libraries, no root.
FROM rust:1.95-alpine AS build
RUN apk add --no-cache build-base cmake perl
WORKDIR /src
COPY . .
RUN cargo build --locked --profile dist --package gradus --target "$(rustc -vV | sed -n 's/^host: //p')" \
 && cp "target/$(rustc -vV | sed -n 's/^host: //p')/dist/gradus" /gradus

FROM scratch
COPY --from=build /gradus /gradus
USER 65532:65532
ENTRYPOINT ["/gradus"]
CMD ["controller"]
