//! Spans of runs to an OpenTelemetry collector. A collector that is not there costs nothing but its spans.

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

/// Path of a collector's traces.
const TRACES: &str = "/v1/traces";

/// The layer that sends this program's spans to the collector at `url`.
pub(crate) fn layer<S>(url: &str) -> Result<impl Layer<S>, ExporterBuildError>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    host::tls::install_cryptography();
    let endpoint = format!("{}{TRACES}", url.trim_end_matches('/'));
    let exporter = SpanExporter::builder().with_http().with_endpoint(endpoint).build()?;
    let resource = Resource::builder().with_service_name("bot-bottle").build();
    let provider =
        SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
    let tracer = provider.tracer("bot-bottle");
    let ours = filter_fn(|meta| meta.target().starts_with("bot_bottle"));
    Ok(tracing_opentelemetry::layer().with_tracer(tracer).with_filter(ours))
}
