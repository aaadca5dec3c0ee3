package diam

// Commands (RFC 6733 3.1, RFC 4006, RFC 7155).
const (
	CommandCapabilitiesExchange uint32 = 257
	CommandReAuth               uint32 = 258
	CommandAA                   uint32 = 265
	CommandAccounting           uint32 = 271
	CommandCreditControl        uint32 = 272
	CommandAbortSession         uint32 = 274
	CommandSessionTermination   uint32 = 275
	CommandDeviceWatchdog       uint32 = 280
	CommandDisconnectPeer       uint32 = 282
)

// Applications. A peer that offers AppRelay shares every application (RFC 6733 2.4).
const (
	AppBase  uint32 = 0
	AppRx    uint32 = 16777236
	AppGx    uint32 = 16777238
	AppGxx   uint32 = 16777266
	AppS9    uint32 = 16777267
	AppRelay uint32 = 0xffffffff
)

// AVP codes of the base protocol that decide traffic (RFC 6733 4.5).
const (
	AVPUserName              uint32 = 1
	AVPFramedIPAddress       uint32 = 8
	AVPCalledStationID       uint32 = 30
	AVPProxyState            uint32 = 33
	AVPFramedIPv6Prefix      uint32 = 97
	AVPHostIPAddress         uint32 = 257
	AVPAuthApplicationID     uint32 = 258
	AVPAcctApplicationID     uint32 = 259
	AVPVendorSpecificAppID   uint32 = 260
	AVPRedirectHostUsage     uint32 = 261
	AVPRedirectMaxCacheTime  uint32 = 262
	AVPSessionID             uint32 = 263
	AVPOriginHost            uint32 = 264
	AVPSupportedVendorID     uint32 = 265
	AVPVendorID              uint32 = 266
	AVPFirmwareRevision      uint32 = 267
	AVPResultCode            uint32 = 268
	AVPProductName           uint32 = 269
	AVPDisconnectCause       uint32 = 273
	AVPAuthSessionState      uint32 = 277
	AVPOriginStateID         uint32 = 278
	AVPFailedAVP             uint32 = 279
	AVPProxyHost             uint32 = 280
	AVPErrorMessage          uint32 = 281
	AVPRouteRecord           uint32 = 282
	AVPDestinationRealm      uint32 = 283
	AVPProxyInfo             uint32 = 284
	AVPRedirectHost          uint32 = 292
	AVPDestinationHost       uint32 = 293
	AVPErrorReportingHost    uint32 = 294
	AVPTerminationCause      uint32 = 295
	AVPOriginRealm           uint32 = 296
	AVPExperimentalResult    uint32 = 297
	AVPExperimentalResultVal uint32 = 298
	AVPInbandSecurityID      uint32 = 299
	AVPCCRequestNumber       uint32 = 415
	AVPCCRequestType         uint32 = 416
	AVPSubscriptionID        uint32 = 443
	AVPSubscriptionIDData    uint32 = 444
	AVPSubscriptionIDType    uint32 = 450
)

// Result codes (RFC 6733 7.1).
const (
	ResultSuccess                uint32 = 2001
	ResultCommandUnsupported     uint32 = 3001
	ResultUnableToDeliver        uint32 = 3002
	ResultRealmNotServed         uint32 = 3003
	ResultTooBusy                uint32 = 3004
	ResultLoopDetected           uint32 = 3005
	ResultRedirectIndication     uint32 = 3006
	ResultApplicationUnsupported uint32 = 3007
	ResultInvalidHeaderBits      uint32 = 3008
	ResultInvalidAVPBits         uint32 = 3009
	ResultUnknownPeer            uint32 = 3010
	ResultUnknownSessionID       uint32 = 5002
	ResultMissingAVP             uint32 = 5005
	ResultAVPOccursTooManyTimes  uint32 = 5009
	ResultNoCommonApplication    uint32 = 5010
	ResultUnableToComply         uint32 = 5012
	ResultInvalidAVPLength       uint32 = 5014
	ResultInvalidMessageLength   uint32 = 5015
	ResultNoCommonSecurity       uint32 = 5017
)

// Cause is a Disconnect-Cause (RFC 6733 5.4.3).
type Cause uint32

// Causes of a DPR. After the last two the receiver should not connect again.
const (
	CauseRebooting Cause = 0
	CauseBusy      Cause = 1
	CauseDoNotWant Cause = 2
)

// String is the name in RFC 6733.
func (c Cause) String() string {
	switch c {
	case CauseRebooting:
		return "REBOOTING"
	case CauseBusy:
		return "BUSY"
	case CauseDoNotWant:
		return "DO_NOT_WANT_TO_TALK_TO_YOU"
	default:
		return "UNKNOWN"
	}
}
