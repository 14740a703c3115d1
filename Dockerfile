# The image is the binary, a configuration and an empty data folder; nothing else.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /out/isthmus ./cmd/isthmus && mkdir /out/data

FROM scratch
COPY --from=build /out/isthmus /isthmus
COPY --from=build --chown=65532:65532 /out/data /data
COPY configs/container.yaml /etc/isthmus.yaml
USER 65532:65532
VOLUME /data
EXPOSE 1883 6650 9876 10911 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["/isthmus"]
CMD ["run", "--config", "/etc/isthmus.yaml"]
